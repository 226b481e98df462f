//! Checks GraphQL documents against a reduced schema: fields, arguments, variables, inputs and fragments exist and fit. As
//! much of the language as our documents use: no directives, no named fragments, no variables with defaults.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Types by name.
pub(super) type Schema = BTreeMap<String, Type>;

#[derive(Deserialize)]
pub(super) struct Type {
    fields: BTreeMap<String, Field>,
    #[serde(default)]
    possible: Vec<String>,
}

#[derive(Deserialize)]
struct Field {
    r#type: String,
    #[serde(default)]
    args: BTreeMap<String, String>,
}

/// What is wrong with a document, if something is.
pub(super) fn check(schema: &Schema, document: &str) -> Result<(), String> {
    let mut reader = Reader { schema, words: words(document), at: 0, variables: BTreeMap::new() };
    let root = match reader.next()?.as_str() {
        "query" => "Query",
        "mutation" => "Mutation",
        other => return Err(format!("a document begins with {other}")),
    };
    reader.next()?;
    if reader.is("(") {
        while !reader.is(")") {
            reader.take("$")?;
            let name = reader.next()?;
            reader.take(":")?;
            let kind = reader.kind()?;
            reader.variables.insert(name, kind);
        }
    }
    reader.take("{")?;
    reader.selection(root)?;
    if reader.at == reader.words.len() { Ok(()) } else { Err("something follows".to_owned()) }
}

/// Names, numbers, texts and single marks; three dots are one.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\n', ',']);
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '.' => 3,
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        found.push(rest[..length].to_owned());
        rest = rest[length..].trim_start_matches([' ', '\n', ',']);
    }
    found
}

struct Reader<'a> {
    schema: &'a Schema,
    words: Vec<String>,
    at: usize,
    variables: BTreeMap<String, String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<String, String> {
        let word = self.words.get(self.at).cloned().ok_or("it ends too soon")?;
        self.at += 1;
        Ok(word)
    }

    /// Whether this comes next; then it is taken.
    fn is(&mut self, word: &str) -> bool {
        let is = self.words.get(self.at).is_some_and(|next| next == word);
        self.at += usize::from(is);
        is
    }

    fn take(&mut self, word: &str) -> Result<(), String> {
        let before = self.at;
        if self.is(word) { Ok(()) } else { Err(format!("{:?} instead of {word}", self.words.get(before))) }
    }

    /// The type of a variable.
    fn kind(&mut self) -> Result<String, String> {
        let name = self.next()?;
        Ok(if self.is("!") { name + "!" } else { name })
    }

    fn type_named(&self, name: &str) -> Option<&Type> {
        self.schema.get(name.trim_matches(['[', ']', '!']))
    }

    /// Everything up to the closing brace, as fields of a type.
    fn selection(&mut self, on: &str) -> Result<(), String> {
        let schema = self.schema;
        let known = schema.get(on).ok_or_else(|| format!("there is no type {on}"))?;
        while !self.is("}") {
            if self.is("...") {
                self.take("on")?;
                let inner = self.next()?;
                let fits = inner == on || known.possible.contains(&inner) || {
                    // Two interfaces fit if something is both.
                    let other = schema.get(&inner).map(|t| t.possible.as_slice()).unwrap_or_default();
                    other.iter().any(|name| known.possible.contains(name))
                };
                if !fits {
                    return Err(format!("{on} is never {inner}"));
                }
                self.take("{")?;
                self.selection(&inner)?;
                continue;
            }
            let mut name = self.next()?;
            if self.is(":") {
                name = self.next()?;
            }
            let field = known.fields.get(&name).ok_or_else(|| format!("{on} has no {name}"))?;
            let mut given = Vec::new();
            if self.is("(") {
                while !self.is(")") {
                    let arg = self.next()?;
                    self.take(":")?;
                    let kind = field.args.get(&arg).ok_or_else(|| format!("{name} takes no {arg}"))?;
                    self.value(kind)?;
                    given.push(arg);
                }
            }
            let missing = field.args.iter().find(|(arg, kind)| kind.ends_with('!') && !given.contains(arg));
            if let Some((arg, _)) = missing {
                return Err(format!("{name} needs {arg}"));
            }
            let inner = field.r#type.trim_matches(['[', ']', '!']).to_owned();
            match (self.type_named(&inner).is_some(), self.is("{")) {
                (true, true) => self.selection(&inner)?,
                (false, false) => {}
                (true, false) => return Err(format!("{name} has fields, and none is asked for")),
                (false, true) => return Err(format!("{name} has no fields")),
            }
        }
        Ok(())
    }

    /// A value of this type.
    fn value(&mut self, kind: &str) -> Result<(), String> {
        let plain = kind.trim_end_matches('!');
        let word = self.next()?;
        let fits = match word.as_str() {
            "$" => {
                let name = self.next()?;
                let given = self.variables.get(&name).ok_or_else(|| format!("there is no ${name}"))?;
                given.trim_end_matches('!') == plain && (!kind.ends_with('!') || given.ends_with('!'))
            }
            "{" => return self.object(plain),
            "true" | "false" => plain == "Boolean",
            text if text.starts_with('"') => matches!(plain, "String" | "ID"),
            number if number.parse::<i64>().is_ok() => plain == "Int",
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{word} is no {kind}")) }
    }

    fn object(&mut self, kind: &str) -> Result<(), String> {
        let schema = self.schema;
        let known = schema.get(kind).ok_or_else(|| format!("there is no type {kind}"))?;
        let mut given = Vec::new();
        while !self.is("}") {
            let name = self.next()?;
            self.take(":")?;
            let field = known.fields.get(&name).ok_or_else(|| format!("{kind} has no {name}"))?;
            self.value(&field.r#type)?;
            given.push(name);
        }
        let missing = known.fields.iter().find(|(name, f)| f.r#type.ends_with('!') && !given.contains(name));
        missing.map_or(Ok(()), |(name, _)| Err(format!("{kind} needs {name}")))
    }
}
