//! The issues that an issue waits for, as its body says, and whether they wait for each other.
//!
//! Two ways of saying it count: a section headed `Dependencies`, `Depends on` or `Blocked by` with
//! `#N` in it, and the phrases `depends on #N` and `blocked by #N` anywhere, also as a trailer (`Depends-on: #N`). Code is never read.
//! Whether an issue is ready is not decided here, nor is a dependency on itself dropped: the caller
//! knows the issue's own number.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::LazyLock;

use regex::Regex;

/// Issue numbers that the body names as dependencies.
///
/// A section ends at the next heading of any level. `#N` elsewhere, for example under `## Related`, is
/// only a mention, but a phrase such as `blocked by #N` counts there too. `owner/repo#N`, `#12abc`,
/// `#0` and numbers beyond 32 bits are no references. Takes time linear in the body's length.
pub fn parse(body: &str) -> BTreeSet<u64> {
    let prose = without_code(body);
    let mut found = BTreeSet::new();
    let mut listing = false;
    for line in prose.lines() {
        match heading(line) {
            Some(title) => listing = is_dependency_title(title),
            None if listing => found.extend(references(line)),
            None => {}
        }
    }
    for phrase in PHRASE.captures_iter(&prose) {
        let list = phrase.get(1).expect("the group is not optional");
        // One character more shows what the last number touches: `#12abc` is no reference.
        let end = prose[list.end()..].chars().next().map_or(list.end(), |c| list.end() + c.len_utf8());
        found.extend(references(&prose[list.start()..end]));
    }
    found
}

/// Issue numbers that a pull request says it closes, in the words that forges understand: `closes #N`, `fixes #N`, `resolves #N`
/// and their other forms. Code is never read.
pub fn closes(text: &str) -> BTreeSet<u64> {
    let prose = without_code(text);
    let mut found = BTreeSet::new();
    for phrase in CLOSING.captures_iter(&prose) {
        let number = phrase.get(1).expect("the group is not optional");
        let end = prose[number.end()..].chars().next().map_or(number.end(), |c| number.end() + c.len_utf8());
        found.extend(references(&prose[number.start()..end]));
    }
    found
}

/// A cycle that leads from `start` back to it: `start` first, each waiting for the next, the last one
/// waiting for `start`. The shortest, and of these the one with the smallest numbers.
pub fn cycle_through(graph: &BTreeMap<u64, BTreeSet<u64>>, start: u64) -> Option<Vec<u64>> {
    let mut came_from: BTreeMap<u64, u64> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &next in graph.get(&node).into_iter().flatten() {
            if next == start {
                let mut path = vec![node];
                while let Some(&before) = came_from.get(path.last().expect("never empty")) {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            if let std::collections::btree_map::Entry::Vacant(slot) = came_from.entry(next) {
                slot.insert(node);
                queue.push_back(next);
            }
        }
    }
    None
}

/// One cycle for each knot of issues that wait for each other, by its smallest number, in rising order.
///
/// A knot can hold exponentially many cycles; the shortest through its smallest number stands for it.
pub fn cycles(graph: &BTreeMap<u64, BTreeSet<u64>>) -> Vec<Vec<u64>> {
    let mut found: Vec<Vec<u64>> = knots(graph)
        .into_iter()
        .filter_map(|knot| cycle_through(graph, *knot.iter().min().expect("a knot has members")))
        .collect();
    found.sort();
    found
}

/// The strongly connected components (Tarjan's algorithm with a stack of its own: a chain of a
/// million issues must not overflow ours).
fn knots(graph: &BTreeMap<u64, BTreeSet<u64>>) -> Vec<Vec<u64>> {
    struct Visit {
        index: usize,
        low: usize,
        open: bool,
    }
    let mut visits: HashMap<u64, Visit> = HashMap::new();
    let (mut open, mut knots) = (Vec::new(), Vec::new());
    let edges = |node: u64| graph.get(&node).into_iter().flatten();
    for &root in graph.keys() {
        if visits.contains_key(&root) {
            continue;
        }
        let mut path = Vec::new();
        let mut enter = Some(root);
        loop {
            if let Some(node) = enter.take() {
                let index = visits.len();
                visits.insert(node, Visit { index, low: index, open: true });
                open.push(node);
                path.push((node, edges(node)));
            }
            let Some((node, rest)) = path.last_mut() else { break };
            let node = *node;
            if let Some(&next) = rest.next() {
                match visits.get(&next) {
                    None => enter = Some(next),
                    Some(seen) if seen.open => {
                        let index = seen.index;
                        let visit = visits.get_mut(&node).expect("on the path, so visited");
                        visit.low = visit.low.min(index);
                    }
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            let Visit { index, low, .. } = visits[&node];
            if let Some((parent, _)) = path.last() {
                let parent = visits.get_mut(parent).expect("on the path, so visited");
                parent.low = parent.low.min(low);
            }
            if low == index {
                let from = open.iter().rposition(|n| *n == node).expect("open until its knot is complete");
                let knot: Vec<u64> = open.drain(from..).collect();
                for member in &knot {
                    visits.get_mut(member).expect("a member was visited").open = false;
                }
                knots.push(knot);
            }
        }
    }
    knots
}

/// A word that closes an issue, and its number.
static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[ \t]*:?[ \t]*(#\d+)")
        .expect("the pattern is fixed and covered by tests")
});

/// The phrase and the list of references behind it; emphasis and a colon may stand between, and one
/// line break, but no blank line.
static PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    let gap = r"[ \t]*\r?\n?[ \t]*";
    let between = format!(r"(?:{gap}[,;&]{gap}(?:and\b{gap})?|[ \t\r]*\n?[ \t]*\band\b{gap}|[ \t]+)");
    Regex::new(&format!(
        r"(?i)\b(?:depends(?:[ \t]+|-)on|blocked(?:[ \t]+|-)by)\b[ \t:*_]*\r?\n?[ \t*_]*([(\[]?#\d+(?:{between}#\d+)*)"
    ))
    .expect("the pattern is fixed and covered by tests")
});

/// The text of an ATX heading (`#` to `######`), if the line is one.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    let hashes = text.bytes().take_while(|b| *b == b'#').count();
    let title = &text[hashes..];
    let is_heading = line.len() - text.len() <= 3
        && (1..=6).contains(&hashes)
        && (title.is_empty() || title.starts_with([' ', '\t', '\r']));
    is_heading.then(|| title.trim())
}

/// Whether a section with this heading lists dependencies.
fn is_dependency_title(title: &str) -> bool {
    let title = title.trim_end_matches('#').trim_matches(|c: char| c.is_whitespace() || ":*_".contains(c));
    let words: Vec<&str> =
        title.split(|c: char| c.is_whitespace() || c == '-').filter(|w| !w.is_empty()).collect();
    let is = |expected: &[&str]| {
        words.len() == expected.len() && words.iter().zip(expected).all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    is(&["dependencies"]) || is(&["depends", "on"]) || is(&["blocked", "by"])
}

/// Every `#N` of the text that refers to an issue of this repository.
fn references(text: &str) -> impl Iterator<Item = u64> {
    text.match_indices('#').filter_map(|(at, _)| {
        // A letter before it makes it another repository's, a slash or `&` part of a URL or an entity.
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "_-./#&\\".contains(c)) {
            return None;
        }
        let rest = &text[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest[digits..].chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        rest[..digits].parse::<u32>().ok().filter(|n| *n > 0).map(u64::from)
    })
}

/// The body with fenced blocks and inline code blanked out, line structure kept.
fn without_code(body: &str) -> String {
    let mut prose = String::with_capacity(body.len());
    let mut fence: Option<(u8, usize)> = None;
    for line in body.split_inclusive('\n') {
        let run = fence_run(line);
        match (fence, run) {
            (Some((mark, length)), Some((other, other_length, rest)))
                if mark == other && other_length >= length && rest.trim().is_empty() =>
            {
                fence = None;
                prose.push('\n');
            }
            (Some(_), _) => prose.push('\n'),
            (None, Some((mark, length, rest))) if mark == b'~' || !rest.contains('`') => {
                fence = Some((mark, length));
                prose.push('\n');
            }
            (None, _) => push_without_inline_code(line, &mut prose),
        }
    }
    prose
}

/// The run of three or more backticks or tildes that a line starts with, and what follows it.
fn fence_run(line: &str) -> Option<(u8, usize, &str)> {
    let text = line.trim_start();
    let mark = *text.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = text.bytes().take_while(|b| *b == mark).count();
    (length >= 3).then(|| (mark, length, &text[length..]))
}

/// Copies a line, leaving out code between two runs of the same number of backticks.
fn push_without_inline_code(line: &str, prose: &mut String) {
    let runs = backtick_runs(line);
    // The last run of each length: without it, every opener would search the whole line for its end.
    let last: HashMap<usize, usize> = runs.iter().enumerate().map(|(i, (_, length))| (*length, i)).collect();
    let (mut copied, mut i) = (0, 0);
    while i < runs.len() {
        let (start, length) = runs[i];
        if last[&length] > i {
            let close = (i + 1..runs.len()).find(|j| runs[*j].1 == length).expect("there is a later one");
            prose.push_str(&line[copied..start]);
            // Not blank: `depends on `x` #5` must not read as `depends on #5`.
            prose.push('`');
            copied = runs[close].0 + length;
            i = close;
        }
        i += 1;
    }
    prose.push_str(&line[copied..]);
}

/// Start and length of each run of backticks; an escaped backtick is text.
fn backtick_runs(line: &str) -> Vec<(usize, usize)> {
    let bytes = line.as_bytes();
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if bytes.get(at + 1) == Some(&b'`') => at += 2,
            b'`' => {
                let length = bytes[at..].iter().take_while(|b| **b == b'`').count();
                runs.push((at, length));
                at += length;
            }
            _ => at += 1,
        }
    }
    runs
}

#[cfg(test)]
mod tests;
