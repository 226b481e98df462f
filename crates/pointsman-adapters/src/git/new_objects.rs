//! The objects that a push of a branch would send: everything that its commits have and the main branch has not. That is more
//! than a diff shows: a file that a later commit deleted, a commit message, the name of a file.

use pointsman_core::ids::Sha;

use super::inspect::shown;
use super::mirror::Mirror;
use super::{Error, PARSED_OUTPUT_CAP};

/// A larger object is not read.
pub const OBJECT_BYTES: u64 = 48 << 20;
/// Objects are read in pieces of about this size.
const PIECE_BYTES: u64 = 8 << 20;

/// An object of a branch that the main branch has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    pub id: Sha,
    /// Where it is, for a file or a directory; empty for a commit. One of several places.
    pub path: String,
    pub size: u64,
    pub kind: ObjectKind,
}

/// The kinds of objects that a branch is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// With its message, and the names of those who made it.
    Commit,
    /// A directory: the names in it.
    Tree,
    File,
}

/// The objects of `head` that `main` has not.
pub fn new_objects(mirror: &Mirror, main: &Sha, head: &Sha) -> Result<Vec<NewObject>, Error> {
    let listed = mirror
        .call("rev-list")
        .args(["--objects", "--end-of-options"])
        .args([head.as_str(), &format!("^{main}")])
        .bytes()
        .map_err(|error| mirror.explain_failure(error, &[main, head]))?;
    let named: Vec<(Sha, String)> = listed.split(|byte| *byte == b'\n').filter_map(named).collect();
    let input: String = named.iter().map(|(id, _)| format!("{id}\n")).collect();
    let sizes = mirror
        .call("cat-file")
        .args(["--batch-check=%(objecttype) %(objectsize)", "--buffer"])
        .stdin(input)
        .text()?;
    let objects: Option<Vec<NewObject>> =
        named.iter().zip(sizes.lines()).map(|((id, path), line)| object(id, path, line)).collect();
    objects.filter(|objects| objects.len() == named.len()).ok_or_else(|| Error::Unexpected {
        operation: "cat-file",
        inputs: format!("{main}..{head}"),
        what: "objects that are not there",
    })
}

/// Reads objects, a piece at a time. None of them may be larger than [`OBJECT_BYTES`].
pub fn for_each_content(
    mirror: &Mirror,
    objects: &[&NewObject],
    mut look: impl FnMut(&NewObject, &[u8]),
) -> Result<(), Error> {
    let mut rest = objects;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|object| {
            let fits = bytes < PIECE_BYTES;
            bytes += object.size;
            fits
        });
        let (piece, behind) = rest.split_at(fits.count().max(1));
        let input: String = piece.iter().map(|object| format!("{}\n", object.id)).collect();
        let output = mirror.call("cat-file").args(["--batch", "--buffer"]).stdin(input).bytes()?;
        let mut output = output.as_slice();
        for object in piece {
            let Some((content, behind)) = first_content(output) else {
                return Err(Error::Unexpected {
                    operation: "cat-file",
                    inputs: object.id.to_string(),
                    what: "an object that is not there",
                });
            };
            look(object, content);
            output = behind;
        }
        rest = behind;
    }
    Ok(())
}

// What is read at once must never be too much output.
const _: () = assert!(OBJECT_BYTES + PIECE_BYTES + (1 << 20) <= PARSED_OUTPUT_CAP as u64);

/// `<id>`, or `<id> <path>`.
fn named(line: &[u8]) -> Option<(Sha, String)> {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let id = Sha::new(std::str::from_utf8(&line[..end]).ok()?)?;
    Some((id, shown(line.get(end + 1..).unwrap_or_default())))
}

/// `<kind> <size>`.
fn object(id: &Sha, path: &str, line: &str) -> Option<NewObject> {
    let (kind, size) = line.split_once(' ')?;
    let kind = match kind {
        "commit" => ObjectKind::Commit,
        "tree" => ObjectKind::Tree,
        "blob" => ObjectKind::File,
        _ => return None,
    };
    Some(NewObject { id: id.clone(), path: path.to_owned(), size: size.parse().ok()?, kind })
}

/// Each record is `<id> <kind> <size> LF <content> LF`.
fn first_content(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let line_end = output.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&output[..line_end]).ok()?.rsplit(' ').next()?.parse().ok()?;
    let content = output.get(line_end + 1..line_end + 1 + size)?;
    Some((content, output.get(line_end + 1 + size + 1..)?))
}
