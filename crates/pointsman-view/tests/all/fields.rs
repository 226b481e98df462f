//! The notation of `docs/commands.md` for the fields of a JSON value: `name`, `name?`, `name[]`, `name{a, b}`,
//! `name[]{a, b}` and `name{…}`.

use serde_json::Value;

/// One field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) optional: bool,
    pub(crate) array: bool,
    pub(crate) inner: Inner,
}

/// What stands in the braces after a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// No braces: a plain value, or an array of plain values.
    Plain,
    /// Three dots: keys that depend on the project, or another command's fields.
    Open,
    Fields(Vec<Field>),
}

/// Reads a list of fields; what cannot be read is told with the rest of the text.
pub(crate) fn parse(text: &str) -> Result<Vec<Field>, String> {
    let mut rest = text;
    let fields = list(&mut rest)?;
    if rest.is_empty() { Ok(fields) } else { Err(format!("`{text}`: what is {rest:?}?")) }
}

fn list(rest: &mut &str) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    loop {
        *rest = rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() {
            return Err(format!("a field is missing before {rest:?}"));
        }
        *rest = after;
        let optional = take(rest, "?");
        let array = take(rest, "[]");
        let inner = if take(rest, "{…}") {
            Inner::Open
        } else if take(rest, "{") {
            let inner = list(rest)?;
            if !take(rest, "}") {
                return Err(format!("the brace of {name} is not closed before {rest:?}"));
            }
            Inner::Fields(inner)
        } else {
            Inner::Plain
        };
        fields.push(Field { name: name.to_owned(), optional, array, inner });
        if !take(rest, ",") {
            return Ok(fields);
        }
    }
}

fn take(rest: &mut &str, token: &str) -> bool {
    match rest.strip_prefix(token) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

/// How an object differs from its documentation, by the path of each field.
pub(crate) fn differences(fields: &[Field], value: &Value, path: &str) -> Vec<String> {
    let Value::Object(object) = value else { return vec![format!("{path} is no object: {value}")] };
    let mut found = Vec::new();
    for name in object.keys().filter(|name| fields.iter().all(|field| field.name != **name)) {
        found.push(format!("{path}.{name} is printed and not documented"));
    }
    for field in fields {
        let here = format!("{path}.{}", field.name);
        match object.get(&field.name) {
            None if field.optional => {}
            None => found.push(format!("{here} is documented and not printed")),
            // Nothing to say: null wherever something else could stand.
            Some(Value::Null) => {}
            Some(Value::Array(items)) if field.array => {
                found.extend(items.iter().flat_map(|item| inside(&field.inner, item, &here)));
            }
            Some(Value::Array(_)) => found.push(format!("{here} is an array, documented without []")),
            Some(_) if field.array => found.push(format!("{here} is documented as an array and is none")),
            Some(value) => found.extend(inside(&field.inner, value, &here)),
        }
    }
    found
}

fn inside(inner: &Inner, value: &Value, path: &str) -> Vec<String> {
    match (inner, value) {
        (Inner::Open, _) => Vec::new(),
        (Inner::Fields(fields), value) => differences(fields, value, path),
        (Inner::Plain, Value::Object(_)) => vec![format!("{path} is an object, documented without fields")],
        (Inner::Plain, _) => Vec::new(),
    }
}

/// Optional fields that no example lacks, or that none has: then nothing was compared. Nested objects that are null or
/// empty in every example, likewise.
pub(crate) fn untried(fields: &[Field], values: &[&Value], path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for field in fields {
        let here = format!("{path}.{}", field.name);
        let there: Vec<&Value> = values.iter().filter_map(|value| value.get(&field.name)).collect();
        if field.optional && there.is_empty() {
            found.push(format!("{here}: no example has it"));
        }
        if field.optional && there.len() == values.len() {
            found.push(format!("{here}: every example has it"));
        }
        if let Inner::Fields(inner) = &field.inner {
            let nested: Vec<&Value> = match field.array {
                true => there.iter().filter_map(|value| value.as_array()).flatten().collect(),
                false => there.into_iter().filter(|value| !value.is_null()).collect(),
            };
            match nested.is_empty() {
                true => found.push(format!("{here}: no example has something in it")),
                false => found.extend(untried(inner, &nested, &here)),
            }
        }
    }
    found
}

#[test]
fn the_notation_is_read() {
    let fields = parse("ok, checks[]{id, fix?}, data{…}, notes[]").unwrap();
    let plain =
        |name: &str| Field { name: name.to_owned(), optional: false, array: false, inner: Inner::Plain };
    let inner = vec![plain("id"), Field { optional: true, ..plain("fix") }];
    let expected = [
        plain("ok"),
        Field { array: true, inner: Inner::Fields(inner), ..plain("checks") },
        Field { inner: Inner::Open, ..plain("data") },
        Field { array: true, ..plain("notes") },
    ];
    assert_eq!(fields, expected);
    for wrong in ["", "a,", "a b", "a{b", "a: b", "A", "a}"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn every_difference_is_found() {
    let fields = parse("a, b?, c[], d{e}, f[]{g}").unwrap();
    let found = |text: &str| differences(&fields, &serde_json::from_str(text).unwrap(), "");
    assert!(found(r#"{"a": 1, "c": [1], "d": {"e": null}, "f": [{"g": 2}]}"#).is_empty());
    assert!(found(r#"{"a": 1, "b": 1, "c": null, "d": null, "f": []}"#).is_empty());
    for wrong in [
        r#"{"c": [], "d": null, "f": []}"#,
        r#"{"a": {"x": 1}, "c": [], "d": null, "f": []}"#,
        r#"{"a": [], "c": [], "d": null, "f": []}"#,
        r#"{"a": 1, "c": 1, "d": null, "f": []}"#,
        r#"{"a": 1, "c": [], "d": {}, "f": []}"#,
        r#"{"a": 1, "c": [], "d": null, "f": [{"g": 1, "h": 1}]}"#,
        r#"{"a": 1, "c": [{"x": 1}], "d": null, "f": []}"#,
        r#"{"a": 1, "c": [], "d": null, "f": [], "z": 1}"#,
    ] {
        assert_eq!(found(wrong).len(), 1, "{wrong}: {:?}", found(wrong));
    }
}
