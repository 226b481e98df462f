//! Commits as objects: read as bytes and written as bytes, so that what is kept is kept exactly and the result has the
//! same id whenever and wherever it is made.

use pointsman_core::ids::Sha;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::mirror::Mirror;
use super::{Call, Error, IDENTITY};

/// A commit's content. Signatures are not kept: they would not fit a changed commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: Sha,
    pub(super) parents: Vec<Sha>,
    author: Vec<u8>,
    committer: Vec<u8>,
    encoding: Option<Vec<u8>>,
    pub(super) message: Vec<u8>,
}

impl Commit {
    fn parse(raw: &[u8]) -> Option<Self> {
        let split = raw.windows(2).position(|pair| pair == b"\n\n")?;
        let (header, message) = (&raw[..split], &raw[split + 2..]);
        let (mut tree, mut parents, mut author, mut committer, mut encoding) =
            (None, Vec::new(), None, None, None);
        for line in header.split(|b| *b == b'\n') {
            let Some(space) = line.iter().position(|b| *b == b' ') else { continue };
            let (key, value) = (&line[..space], &line[space + 1..]);
            match key {
                b"tree" => tree = sha(value),
                b"parent" => parents.push(sha(value)?),
                b"author" => author = Some(value.to_vec()),
                b"committer" => committer = Some(value.to_vec()),
                b"encoding" => encoding = Some(value.to_vec()),
                // gpgsig and its continuation lines, mergetag, and what the future brings.
                _ => {}
            }
        }
        Some(Self {
            tree: tree?,
            parents,
            author: author?,
            committer: committer?,
            encoding,
            message: message.to_vec(),
        })
    }

    /// The same change as a commit of ours: other tree, other parents; the author stays, the committer is the daemon at
    /// the given time, which is never the time of now, so that the id can be computed again.
    pub(super) fn moved(&self, tree: &Sha, parents: &[&Sha], seconds: i64) -> Self {
        Self {
            tree: tree.clone(),
            parents: parents.iter().map(|&p| p.clone()).collect(),
            committer: us_at(seconds),
            ..self.clone()
        }
    }

    /// A commit that nobody sees, for its tree and its parent alone.
    pub(super) fn stand_in(tree: &Sha, parent: &Sha) -> Self {
        Self::ours(tree, parent, 0, "stand-in")
    }

    /// A commit by the daemon itself, at this time.
    pub(super) fn ours(tree: &Sha, parent: &Sha, seconds: i64, message: &str) -> Self {
        let us = us_at(seconds);
        let commit = Self {
            tree: tree.clone(),
            parents: vec![parent.clone()],
            author: us.clone(),
            committer: us,
            encoding: None,
            message: Vec::new(),
        };
        commit.with_message(message)
    }

    /// The same commit with another message, in UTF-8.
    pub(super) fn with_message(mut self, message: &str) -> Self {
        self.encoding = None;
        self.message = message.trim_end().as_bytes().to_vec();
        self.message.push(b'\n');
        self
    }

    /// The same commit with the daemon as its author too.
    pub(super) fn by_us(mut self) -> Self {
        self.author.clone_from(&self.committer);
        self
    }

    /// When it was committed, in seconds; 0 if that cannot be read.
    pub(super) fn seconds(&self) -> i64 {
        let start = self.committer.iter().rposition(|b| *b == b'>').map_or(0, |at| at + 1);
        let stamp = String::from_utf8_lossy(&self.committer[start..]);
        stamp.split_ascii_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
    }

    /// Name and address of the author.
    pub(super) fn author(&self) -> String {
        let end = self.author.iter().rposition(|b| *b == b'>').map_or(self.author.len(), |at| at + 1);
        String::from_utf8_lossy(&self.author[..end]).trim().to_owned()
    }

    /// Its message as text. Git's messages are UTF-8 unless the commit says otherwise; other bytes are replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.message).trim_end().to_owned()
    }

    /// The id it has in a repository with ids of the same kind as its tree's.
    pub(super) fn id(&self) -> Sha {
        let raw = self.to_bytes();
        let object = [format!("commit {}\0", raw.len()).as_bytes(), &raw].concat();
        let hex = |digest: &[u8]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let text = match self.tree.as_str().len() {
            64 => hex(&Sha256::digest(&object)),
            _ => hex(&Sha1::digest(&object)),
        };
        Sha::new(&text).expect("a digest is an object id")
    }

    /// Writes it with this call of `hash-object`. Git checks its form.
    pub(super) fn write(&self, hash_object: Call) -> Result<Sha, Error> {
        hash_object.args(["-t", "commit", "-w", "--stdin"]).stdin(self.to_bytes()).sha()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut raw = format!("tree {}\n", self.tree).into_bytes();
        for parent in &self.parents {
            raw.extend(format!("parent {parent}\n").into_bytes());
        }
        let headers = [
            (&b"author "[..], Some(&self.author)),
            (b"committer ", Some(&self.committer)),
            (b"encoding ", self.encoding.as_ref()),
        ];
        for (key, value) in headers {
            if let Some(value) = value {
                raw.extend(key);
                raw.extend(value);
                raw.push(b'\n');
            }
        }
        raw.push(b'\n');
        raw.extend(&self.message);
        raw
    }
}

fn us_at(seconds: i64) -> Vec<u8> {
    format!("{IDENTITY} {seconds} +0000").into_bytes()
}

fn sha(bytes: &[u8]) -> Option<Sha> {
    Sha::new(std::str::from_utf8(bytes).ok()?)
}

impl Mirror {
    /// Reads commits, in the order asked for.
    pub(super) fn read_commits(&self, shas: &[Sha]) -> Result<Vec<Commit>, Error> {
        self.read_objects("commit", shas, Commit::parse)
    }

    /// Reads the contents of files, in the order asked for.
    pub(super) fn read_blobs(&self, shas: &[Sha]) -> Result<Vec<Vec<u8>>, Error> {
        self.read_objects("blob", shas, |content| Some(content.to_vec()))
    }

    fn read_objects<T>(
        &self,
        kind: &'static str,
        shas: &[Sha],
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let input: String = shas.iter().map(|sha| format!("{sha}\n")).collect();
        let output = self.call("cat-file").args(["--batch"]).stdin(input).bytes()?;
        let found = split_batch(&output, kind)
            .filter(|contents| contents.len() == shas.len())
            .and_then(|contents| contents.into_iter().map(parse).collect());
        found.ok_or_else(|| Error::Unexpected {
            operation: "cat-file",
            inputs: format!("{} objects", shas.len()),
            what: "an object that is not there or not of its kind",
        })
    }
}

/// Each record is `<id> <kind> <size> LF <content> LF`.
fn split_batch<'a>(mut output: &'a [u8], kind: &str) -> Option<Vec<&'a [u8]>> {
    let mut contents = Vec::new();
    while !output.is_empty() {
        let line_end = output.iter().position(|b| *b == b'\n')?;
        let mut words = std::str::from_utf8(&output[..line_end]).ok()?.split(' ').skip(1);
        if words.next()? != kind {
            return None;
        }
        let size: usize = words.next()?.parse().ok()?;
        contents.push(output.get(line_end + 1..line_end + 1 + size)?);
        output = output.get(line_end + 1 + size + 1..)?;
    }
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::Commit;
    use pointsman_core::ids::Sha;

    const RAW: &str = "tree 1111111111111111111111111111111111111111\n\
        parent 2222222222222222222222222222222222222222\n\
        author A <> B <a@b> 1700000000 +0130\n\
        committer C <c@d> 1700000001 -0200\n\
        gpgsig -----BEGIN\n author fake <f@f> 1 +0000\n -----END\n\
        encoding ISO-8859-1\n\nsubject\n\n\nbody\n";

    #[test]
    fn a_moved_commit_keeps_author_encoding_and_message_and_drops_the_signature() {
        let commit = Commit::parse(RAW.as_bytes()).unwrap();
        let (tree, parent) = (Sha::new(&"3".repeat(40)).unwrap(), Sha::new(&"4".repeat(40)).unwrap());
        let moved = String::from_utf8(commit.moved(&tree, &[&parent], 1_700_000_009).to_bytes()).unwrap();
        let expected = "tree 3333333333333333333333333333333333333333\n\
            parent 4444444444444444444444444444444444444444\n\
            author A <> B <a@b> 1700000000 +0130\n\
            committer Pointsman <pointsman@localhost> 1700000009 +0000\n\
            encoding ISO-8859-1\n\nsubject\n\n\nbody\n";
        assert_eq!(moved, expected);
        assert_eq!((commit.seconds(), commit.author().as_str()), (1_700_000_001, "A <> B <a@b>"));
    }
}
