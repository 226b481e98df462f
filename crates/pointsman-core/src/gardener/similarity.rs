//! The likeness of two issues. No network, no model: words in their plainest form and parts of words, weighed by how
//! rare they are among all open issues. It proposes; whoever decides reads both.

use std::collections::{BTreeMap, BTreeSet};

/// From here on two issues are perhaps the same. Tuned, as all numbers here, on the first labelled set of the tests.
pub const DUPLICATE: f64 = 0.31;
/// Of a body so many characters are looked at: what it is about stands at its beginning.
const BODY: usize = 800;
/// A word of the title counts as often as this.
const TITLE: usize = 2;
/// Letters of a part of a word. Parts see that "migrate" and "migrations", "Postgres" and "PostgreSQL" are akin.
const PART: usize = 3;
/// What parts count beside whole words.
const PARTS: f64 = 0.5;
/// Words that have so many letters in common at their beginning are akin.
const AKIN: usize = 4;
/// Titles that begin alike and then name different things are of a series, and seldom the same.
const SERIES: f64 = 0.4;
/// Titles without a common word: what the bodies share may be a form that was filled in.
const OTHER_TITLE: f64 = 0.7;
/// Titles that want different things done.
const OTHER_DEED: f64 = 0.6;

/// Words that say nothing about what an issue is about: those of every sentence, and those of forms.
const FILLERS: [&str; 77] = [
    "a",
    "about",
    "acceptance",
    "actual",
    "add",
    "after",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "behavior",
    "behaviour",
    "but",
    "by",
    "can",
    "context",
    "criteria",
    "criterion",
    "description",
    "do",
    "does",
    "expected",
    "for",
    "from",
    "get",
    "has",
    "have",
    "if",
    "in",
    "instead",
    "into",
    "is",
    "it",
    "its",
    "make",
    "must",
    "need",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "reproduce",
    "should",
    "so",
    "some",
    "step",
    "steps",
    "summary",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "they",
    "this",
    "to",
    "up",
    "use",
    "want",
    "was",
    "we",
    "when",
    "which",
    "will",
    "with",
    "would",
    "you",
    "your",
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

/// What titles want, by their words.
const DEEDS: [(&str, &[&str]); 8] = [
    ("remove", &["remove", "drop", "delete"]),
    ("document", &["document", "docs", "doc", "describe", "explain"]),
    (
        "mend",
        &["fail", "fails", "crash", "crashes", "panic", "broken", "breaks", "bug", "flaky", "error", "hangs"],
    ),
    ("hasten", &["slow", "speed", "takes", "fast", "faster"]),
    ("renew", &["upgrade", "update", "bump"]),
    ("take in", &["import", "upload"]),
    ("give out", &["export", "download"]),
    ("refuse", &["reject", "refuse", "validate", "ignored"]),
];

/// Texts that are compared with each other.
pub struct Texts(Vec<Text>);

struct Text {
    words: Vector,
    parts: Vector,
    title: Vec<String>,
    deeds: BTreeSet<&'static str>,
}

/// Weights by the number of a word, in the order of the numbers; the length of the vector is 1, or there is nothing in it.
type Vector = Vec<(u32, f64)>;

impl Texts {
    /// Reads titles and bodies.
    pub fn new<'t>(issues: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let (mut all_words, mut all_parts, mut titles) = (Vec::new(), Vec::new(), Vec::new());
        for (title, body) in issues {
            let body: String = body.chars().take(BODY).collect();
            let weighed = |read: fn(&str) -> Vec<String>| {
                let titles = std::iter::repeat_n(read(title), TITLE).flatten();
                titles.chain(read(&body)).collect::<Vec<String>>()
            };
            all_words.push(weighed(words));
            all_parts.push(weighed(parts));
            titles.push((words(title), deeds(title)));
        }
        let (words, parts) = (vectors(&all_words), vectors(&all_parts));
        let texts = words.into_iter().zip(parts).zip(titles);
        Self(texts.map(|((words, parts), (title, deeds))| Text { words, parts, title, deeds }).collect())
    }

    /// The similarity of two texts, by their places: 0 to 1.
    pub fn alike(&self, one: usize, other: usize) -> f64 {
        let (Some(one), Some(other)) = (self.0.get(one), self.0.get(other)) else { return 0.0 };
        let by_words = cosine(&one.words, &other.words);
        // Without a common word the parts are an accident.
        if by_words <= 0.0 {
            return 0.0;
        }
        let mut alike = (1.0 - PARTS) * by_words + PARTS * cosine(&one.parts, &other.parts);
        if are_of_a_series(&one.title, &other.title) {
            alike *= SERIES;
        }
        if !one.title.iter().any(|word| other.title.contains(word)) {
            alike *= OTHER_TITLE;
        }
        if !one.deeds.is_empty() && !other.deeds.is_empty() && one.deeds.is_disjoint(&other.deeds) {
            alike *= OTHER_DEED;
        }
        alike
    }
}

/// Whether two titles begin with the same word and end with words that the other has not, or differ in one word each:
/// "Translate the settings", "Translate the help".
fn are_of_a_series(one: &[String], other: &[String]) -> bool {
    let lacks = |from: &[String], of: &[String]| {
        from.iter().filter(|word| !of.iter().any(|there| are_akin(word, there))).count()
    };
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one_rest, other_rest) = (&one[same..], &other[same..]);
    let begin_alike = same > 0 && lacks(one_rest, other_rest) > 0 && lacks(other_rest, one_rest) > 0;
    let common = one.len() - lacks(one, other);
    begin_alike || (common >= 2 && lacks(one, other) == 1 && lacks(other, one) == 1)
}

/// Whether words begin alike: what takes endings off does not take off all of them.
fn are_akin(one: &str, other: &str) -> bool {
    one == other || one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count() >= AKIN
}

fn deeds(title: &str) -> BTreeSet<&'static str> {
    let lower = title.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let wants = |(_, named): &&(&str, &[&str])| named.iter().any(|name| words.contains(name));
    DEEDS.iter().filter(wants).map(|(deed, _)| *deed).collect()
}

fn says_something(word: &&str) -> bool {
    word.chars().count() > 1 && !FILLERS.contains(word)
}

/// The words of a text that say something, in their plainest form, and names from code as they are.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.to_lowercase().split(|c: char| !c.is_alphanumeric() && !"_:.-/".contains(c)) {
        let piece = piece.trim_matches(['_', ':', '.', '-', '/']);
        // `cart::totals_are_rounded` names one thing, whatever its words are.
        if piece.contains(['_', ':', '.']) && piece.contains(|c: char| c.is_ascii_lowercase()) {
            found.push(piece.to_owned());
            continue;
        }
        found.extend(piece.split(|c: char| !c.is_alphanumeric()).filter(says_something).map(|word| {
            let plain = stem(word);
            let same = SAME.iter().find(|(from, _)| *from == plain || *from == word);
            same.map_or(plain, |(_, to)| (*to).to_owned())
        }));
    }
    found
}

/// All parts of all words, with where a word begins and ends.
fn parts(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(says_something) {
        let letters: Vec<char> = format!(" {word} ").chars().collect();
        found.extend(letters.windows(PART).map(|part| part.iter().collect::<String>()));
    }
    found
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

/// Each text as a vector: what is rare among all of them weighs more.
fn vectors(texts: &[Vec<String>]) -> Vec<Vector> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut found_in: Vec<u32> = Vec::new();
    let counted: Vec<BTreeMap<u32, f64>> = texts
        .iter()
        .map(|text| {
            let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
            for word in text {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                let number = *numbers.entry(word).or_insert(next);
                if number == next {
                    found_in.push(0);
                }
                *counts.entry(number).or_default() += 1.0;
            }
            for number in counts.keys() {
                found_in[*number as usize] += 1;
            }
            counts
        })
        .collect();
    let all = texts.len() as f64;
    // What all have says next to nothing: long texts share much of that.
    let rarity = |number: u32| ((1.0 + all) / f64::from(found_in[number as usize])).ln();
    let weigh = |(number, count): (u32, f64)| (number, (1.0 + f64::ln(count)) * rarity(number));
    let vector = |counts: BTreeMap<u32, f64>| -> Vector {
        let weighed: Vector = counts.into_iter().map(weigh).collect();
        let length = weighed.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        weighed.into_iter().map(|(number, weight)| (number, weight / length)).collect()
    };
    counted.into_iter().map(vector).collect()
}

fn cosine(one: &Vector, other: &Vector) -> f64 {
    let (mut sum, mut here, mut there) = (0.0, 0, 0);
    while let (Some((a, weight)), Some((b, its_weight))) = (one.get(here), other.get(there)) {
        if a == b {
            sum += weight * its_weight;
        }
        here += usize::from(a <= b);
        there += usize::from(b <= a);
    }
    sum
}
