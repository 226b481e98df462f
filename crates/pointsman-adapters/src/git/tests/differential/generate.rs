//! Random histories as a stream for `git fast-import`: trees are kept in memory and changed as people change them.

use std::collections::BTreeMap;

use super::random::Random;

/// Every commit of a submodule looks alike.
const SUBMODULES: [&str; 3] = [
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
    "3333333333333333333333333333333333333333",
];
const DIRECTORIES: [&str; 6] = ["", "", "d/", "d/sub/", "e/", "-x/"];
const NAMES: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c",
    b"code.rs",
    b"-f",
    b"q\"uote'",
    b"new\nline",
    b"sp ace ",
    b"caf\xc3\xa9",
    b"\xff\xfe",
    b"$(id)",
    b":(top)x",
];

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    mode: &'static str,
    content: Vec<u8>,
}

#[derive(Clone, Default)]
struct Tree(BTreeMap<Vec<u8>, Entry>);

struct Commit {
    parents: Vec<usize>,
    tree: Tree,
}

/// Main, a branch, and another branch that lands before it, from a common start.
pub(super) struct History {
    pub(super) number: u64,
    commits: Vec<Commit>,
    main: usize,
    task: usize,
    other: usize,
    pub(super) odd: Option<Odd>,
}

/// Branches that people make seldom, and that merge queues get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Odd {
    /// A merge with `-s ours` on top of main: its tree is main's.
    ClosesAnother,
    /// A merge of main with `-s ours` on the branch: what main did is taken back.
    IgnoresMain,
    /// Commits that change nothing.
    Empty,
    /// It makes and undoes what main did.
    MakesAndUndoes,
    /// It makes what main made, in commits of its own.
    SameAsMain,
    /// A merge of three.
    Octopus,
}

impl Odd {
    const ALL: [Self; 6] = [
        Self::ClosesAnother,
        Self::IgnoresMain,
        Self::Empty,
        Self::MakesAndUndoes,
        Self::SameAsMain,
        Self::Octopus,
    ];
}

impl History {
    pub(super) fn random(number: u64) -> Self {
        let mut random = Random::new(number);
        let mut tree = Tree::default();
        for _ in 0..10 + random.below(12) {
            let path = some_path(&mut random);
            let entry = some_file(&mut random);
            tree.put(path, entry);
        }
        let start = vec![Commit { parents: vec![], tree }];
        let mut history = Self { number, commits: start, main: 0, task: 0, other: 0, odd: None };
        // The same change can be made on both sides.
        let common = random.fork();
        let crossing = random.percent(45);
        for round in 0..1 + usize::from(crossing) * (1 + random.below(2)) {
            for _ in 0..1 + random.below(2) {
                history.main = history.next(history.main, &mut random, &common);
            }
            for _ in 0..1 + random.below(3) {
                history.task = history.next(history.task, &mut random, &common);
            }
            if crossing && round == 0 {
                let (main, task) = (history.main, history.task);
                history.task = history.join(task, main, &mut random);
                if random.percent(60) {
                    history.main = history.join(main, task, &mut random);
                }
            }
        }
        if crossing {
            history.task = history.next(history.task, &mut random, &common);
        }
        history.other = history.next(0, &mut random, &common);
        // Every third one, so that each kind comes up in a short run.
        if number % 3 == 2 {
            let odd = Odd::ALL[usize::try_from(number / 3).unwrap_or(0) % Odd::ALL.len()];
            history.become_odd(odd, &mut random, &common);
        }
        history
    }

    fn become_odd(&mut self, odd: Odd, random: &mut Random, common: &Random) {
        let (main, task) = (self.main, self.task);
        let tree = |history: &Self, commit: usize| history.commits[commit].tree.clone();
        self.task = match odd {
            Odd::ClosesAnother => self.add(vec![main, task], tree(self, main)),
            Odd::IgnoresMain => self.add(vec![task, main], tree(self, task)),
            Odd::Empty => {
                let first = self.add(vec![0], tree(self, 0));
                self.add(vec![first], tree(self, 0))
            }
            Odd::MakesAndUndoes => {
                let made = self.add(vec![0], tree(self, main));
                let undone = self.add(vec![made], tree(self, 0));
                self.next(undone, random, common)
            }
            Odd::SameAsMain => self.add(vec![0], tree(self, main)),
            Odd::Octopus => {
                let third = self.next(0, random, common);
                let joined = self.join(task, third, random);
                let tree = tree(self, joined);
                self.add(vec![task, third, self.other], tree)
            }
        };
        self.odd = Some(odd);
    }

    fn add(&mut self, parents: Vec<usize>, tree: Tree) -> usize {
        self.commits.push(Commit { parents, tree });
        self.commits.len() - 1
    }

    fn next(&mut self, parent: usize, random: &mut Random, common: &Random) -> usize {
        let mut tree = self.commits[parent].tree.clone();
        if !random.percent(7) {
            for _ in 0..1 + random.below(2) {
                if random.percent(15) { tree.change(&mut common.clone()) } else { tree.change(random) }
            }
        }
        self.commits.push(Commit { parents: vec![parent], tree });
        self.commits.len() - 1
    }

    /// A merge as a person resolves it: what only one side changed, and of the rest one or the other.
    fn join(&mut self, ours: usize, theirs: usize, random: &mut Random) -> usize {
        let (base, a, b) =
            (&self.commits[0].tree.0, &self.commits[ours].tree.0, &self.commits[theirs].tree.0);
        let mut tree = Tree::default();
        let paths: std::collections::BTreeSet<&Vec<u8>> = a.keys().chain(b.keys()).collect();
        for path in paths {
            let (was, a, b) = (base.get(path), a.get(path), b.get(path));
            let taken = match () {
                () if a == was => b,
                () if b == was || random.percent(50) => a,
                () => b,
            };
            if let Some(entry) = taken {
                tree.put(path.clone(), entry.clone());
            }
        }
        self.commits.push(Commit { parents: vec![ours, theirs], tree });
        self.commits.len() - 1
    }

    /// Whether no merge leads to either end.
    pub(super) fn is_linear(&self) -> bool {
        let is_single = |mut at: usize| loop {
            match self.commits[at].parents.as_slice() {
                [] => return true,
                [parent] => at = *parent,
                _ => return false,
            }
        };
        is_single(self.main) && is_single(self.task)
    }

    pub(super) fn refname(&self, name: &str) -> String {
        format!("refs/differential/{}/{name}", self.number)
    }

    pub(super) fn fast_import(&self) -> Vec<u8> {
        let mut stream = Vec::new();
        let mark = |commit: usize| self.number * 1000 + commit as u64 + 1;
        for (n, commit) in self.commits.iter().enumerate() {
            let time = 1_700_000_000 + n;
            let head = format!(
                "commit {}\nmark :{}\ncommitter T <t@example.org> {time} +0000\ndata 1\nx\n",
                self.refname(&n.to_string()),
                mark(n)
            );
            stream.extend(head.into_bytes());
            for (nth, parent) in commit.parents.iter().enumerate() {
                let word = if nth == 0 { "from" } else { "merge" };
                stream.extend(format!("{word} :{}\n", mark(*parent)).into_bytes());
            }
            stream.extend(b"deleteall\n");
            for (path, entry) in &commit.tree.0 {
                let is_submodule = entry.mode == "160000";
                let what =
                    if is_submodule { String::from_utf8_lossy(&entry.content) } else { "inline".into() };
                stream.extend(format!("M {} {what} ", entry.mode).into_bytes());
                stream.extend(quoted(path));
                stream.push(b'\n');
                if !is_submodule {
                    stream.extend(format!("data {}\n", entry.content.len()).into_bytes());
                    stream.extend(&entry.content);
                    stream.push(b'\n');
                }
            }
            stream.push(b'\n');
        }
        for (name, commit) in [("main", self.main), ("task", self.task), ("other", self.other)] {
            stream.extend(format!("reset {}\nfrom :{}\n\n", self.refname(name), mark(commit)).into_bytes());
        }
        stream
    }
}

impl Tree {
    /// A file where a directory was replaces it, and the other way round.
    fn put(&mut self, path: Vec<u8>, entry: Entry) {
        let inside =
            |outer: &[u8], inner: &[u8]| inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/');
        self.0.retain(|other, _| !inside(other, &path) && !inside(&path, other));
        self.0.insert(path, entry);
    }

    fn some(&self, random: &mut Random) -> Option<Vec<u8>> {
        if self.0.is_empty() { None } else { self.0.keys().nth(random.below(self.0.len())).cloned() }
    }

    fn change(&mut self, random: &mut Random) {
        let Some(path) = self.some(random) else {
            return self.put(b"again".to_vec(), some_file(random));
        };
        let entry = self.0[&path].clone();
        match random.below(20) {
            0..7 => self.edit(&path, random),
            7 | 8 => self.put(some_path(random), some_file(random)),
            9 => drop(self.0.remove(&path)),
            10 => self.flip_mode(&path),
            11 => self.put(path, Entry { mode: "120000", content: random.pick(&NAMES[..4]).to_vec() }),
            12 => self.put(path, Entry { mode: "100644", content: Vec::new() }),
            13 => self.with_other_line_ends(&path),
            14..17 => {
                self.0.remove(&path);
                let to = some_path(random);
                self.put(to.clone(), entry);
                if random.percent(50) {
                    self.edit(&to, random);
                }
            }
            17 => self.rename_directory(random),
            18 => self.put([&path[..], b"/inside"].concat(), entry),
            _ => {
                let content = random.pick(&SUBMODULES).as_bytes().to_vec();
                self.put(b"module".to_vec(), Entry { mode: "160000", content });
            }
        }
    }

    fn edit(&mut self, path: &[u8], random: &mut Random) {
        let Some(entry) = self.0.get_mut(path).filter(|entry| entry.mode.starts_with("100")) else { return };
        if entry.content.contains(&0) {
            let at = random.below(entry.content.len());
            entry.content[at] ^= 1 + random.below(7) as u8;
            return;
        }
        let mut lines: Vec<Vec<u8>> =
            entry.content.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let new = some_line(random);
        let at = random.below(lines.len() + 1);
        match random.below(3) {
            0 => lines.insert(at, new),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = new,
            _ => lines.push(new),
        }
        entry.content = lines.concat();
    }

    fn flip_mode(&mut self, path: &[u8]) {
        if let Some(entry) = self.0.get_mut(path) {
            entry.mode = match entry.mode {
                "100644" => "100755",
                "100755" => "100644",
                other => other,
            };
        }
    }

    fn with_other_line_ends(&mut self, path: &[u8]) {
        let Some(entry) = self.0.get_mut(path).filter(|entry| entry.mode.starts_with("100")) else { return };
        let has = entry.content.contains(&b'\r');
        let plain: Vec<u8> = entry.content.iter().copied().filter(|b| *b != b'\r').collect();
        let crlf =
            || plain.iter().flat_map(|b| if *b == b'\n' { vec![b'\r', b'\n'] } else { vec![*b] }).collect();
        entry.content = if has { plain } else { crlf() };
    }

    fn rename_directory(&mut self, random: &mut Random) {
        let from = *random.pick(&["d/", "d/sub/", "e/", "-x/"]);
        let to = *random.pick(&["moved/", "e/", "d/deep/er/"]);
        let moving: Vec<Vec<u8>> =
            self.0.keys().filter(|path| path.starts_with(from.as_bytes())).cloned().collect();
        for path in moving {
            if let Some(entry) = self.0.remove(&path) {
                self.put([to.as_bytes(), &path[from.len()..]].concat(), entry);
            }
        }
    }
}

fn some_path(random: &mut Random) -> Vec<u8> {
    let (directory, name) = (*random.pick(&DIRECTORIES), *random.pick(&NAMES));
    [directory.as_bytes(), name].concat()
}

fn some_line(random: &mut Random) -> Vec<u8> {
    format!("{} {}\n", random.pick(&["let", "fn", "use", "}", ""]), random.below(9)).into_bytes()
}

fn some_file(random: &mut Random) -> Entry {
    let mode = if random.percent(15) { "100755" } else { "100644" };
    let mut content: Vec<u8> = (0..5 + random.below(15)).flat_map(|_| some_line(random)).collect();
    match random.below(12) {
        0 => content.clear(),
        1 => content[3] = 0,
        2 => drop(content.pop()),
        3 => return Entry { mode: "120000", content: b"a".to_vec() },
        _ => {}
    }
    Entry { mode, content }
}

/// Every odd byte as an octal escape.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for b in path {
        match b {
            b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' => quoted.push(*b),
            _ => quoted.extend(format!("\\{b:03o}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}
