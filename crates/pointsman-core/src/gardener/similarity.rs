//! How alike two issues are. No network, no model: words in their plainest form, weighed by how rare they are among all
//! open issues. It proposes; whoever decides reads both.

use std::collections::{BTreeMap, BTreeSet};

/// From here on two issues are perhaps the same. Tuned on the labelled set of the tests.
pub const DUPLICATE: f64 = 0.33;
/// Of a body so many characters are looked at: what it is about stands at its beginning.
const BODY: usize = 3000;
/// A word of the title counts as often as this.
const TITLE: usize = 2;

/// Words that say nothing about what an issue is about.
const FILLERS: [&str; 64] = [
    "a", "about", "add", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
    "but", "by", "can", "do", "does", "for", "from", "get", "has", "have", "if", "in", "instead", "into",
    "is", "it", "its", "make", "must", "need", "no", "not", "of", "on", "or", "our", "should", "so", "some",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "up", "use", "want", "was", "we",
    "when", "which", "will", "with", "would", "you", "your",
];

/// Words that mean the same in issues.
const SAME: [(&str, &str); 20] = [
    ("crash", "fail"),
    ("panic", "fail"),
    ("broken", "fail"),
    ("break", "fail"),
    ("error", "fail"),
    ("bug", "fail"),
    ("wrong", "fail"),
    ("doc", "document"),
    ("documentation", "document"),
    ("describe", "document"),
    ("configuration", "config"),
    ("setting", "config"),
    ("option", "config"),
    ("delete", "remove"),
    ("drop", "remove"),
    ("picture", "image"),
    ("photo", "image"),
    ("login", "sign"),
    ("shutdown", "stop"),
    ("typo", "misspelt"),
];

/// Words with their weights; the length of the vector is 1, or there is nothing in it.
type Vector = BTreeMap<String, f64>;

/// Texts that are compared with each other.
pub struct Texts(Vec<Vector>);

impl Texts {
    /// Reads titles and bodies.
    pub fn new<'t>(issues: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let read: Vec<Vec<String>> = issues
            .into_iter()
            .map(|(title, body)| {
                let body: String = body.chars().take(BODY).collect();
                let title = words(title);
                let titles = std::iter::repeat_n(title, TITLE).flatten();
                titles.chain(words(&body)).collect()
            })
            .collect();
        let mut found_in: BTreeMap<&str, usize> = BTreeMap::new();
        for text in &read {
            for word in text.iter().map(String::as_str).collect::<BTreeSet<_>>() {
                *found_in.entry(word).or_default() += 1;
            }
        }
        let all = read.len() as f64;
        let rarity = |word: &str| {
            let found = found_in.get(word).copied().unwrap_or(1) as f64;
            (1.0 + all / found).ln()
        };
        Self(read.iter().map(|text| vector(text, rarity)).collect())
    }

    /// How alike two of them are, by their places: 0 to 1.
    pub fn alike(&self, one: usize, other: usize) -> f64 {
        let (Some(one), Some(other)) = (self.0.get(one), self.0.get(other)) else { return 0.0 };
        cosine(one, other)
    }
}

/// The words of a text that say something, in their plainest form, and names from code as they are.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let plain = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1 && !FILLERS.contains(word))
        .map(|word| {
            let plain = stem(word);
            let same = SAME.iter().find(|(from, _)| *from == plain || *from == word);
            same.map_or(plain, |(_, to)| (*to).to_owned())
        });
    // `cart::totals_are_rounded` names one thing, whatever its words are.
    let names = lower
        .split(|c: char| !c.is_alphanumeric() && !"_:.".contains(c))
        .map(|name| name.trim_matches(['_', ':', '.']))
        .filter(|name| name.contains(['_', ':', '.']))
        .map(str::to_owned);
    plain.chain(names).collect()
}

/// Takes off the ending of an English word.
fn stem(word: &str) -> String {
    let endings = ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s"];
    let ending =
        endings.into_iter().find(|ending| word.strip_suffix(ending).is_some_and(|rest| rest.len() >= 3));
    match ending {
        Some("ies") => format!("{}y", &word[..word.len() - 3]),
        // "ss" is no plural.
        Some("s") if word.ends_with("ss") => word.to_owned(),
        Some(ending) => {
            let rest = &word[..word.len() - ending.len()];
            // "stopped", "running"
            let mut letters = rest.chars().rev();
            match (letters.next(), letters.next()) {
                (Some(last), Some(before)) if last == before && !"lsz".contains(last) && ending != "s" => {
                    rest[..rest.len() - last.len_utf8()].to_owned()
                }
                _ => rest.trim_end_matches('e').to_owned(),
            }
        }
        None => word.trim_end_matches('e').to_owned(),
    }
}

fn vector(words: &[String], rarity: impl Fn(&str) -> f64) -> Vector {
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1.0;
    }
    let weigh = |(word, count): (&str, f64)| (word.to_owned(), (1.0 + f64::ln(count)) * rarity(word));
    let weighed: Vector = counts.into_iter().map(weigh).collect();
    let length = weighed.values().map(|weight| weight * weight).sum::<f64>().sqrt();
    if length > 0.0 {
        weighed.into_iter().map(|(word, weight)| (word, weight / length)).collect()
    } else {
        weighed
    }
}

fn cosine(one: &Vector, other: &Vector) -> f64 {
    let (few, many) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    few.iter().filter_map(|(word, weight)| many.get(word).map(|there| weight * there)).sum()
}
