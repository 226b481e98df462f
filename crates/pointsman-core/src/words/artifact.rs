//! Sentences about artifacts.

use crate::artifact::{FILE_BYTES, FILES, LeftOut, TOTAL_BYTES};
use crate::text::clean_line;

pub const MORE_LEFT_OUT: &str = "more files were left out";

const MIB: u64 = 1 << 20;

/// A file that was not kept. The name is the agent's.
pub fn left_out(below: &str, name: &str, why: LeftOut) -> String {
    let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
    let why = match why {
        LeftOut::Name => "its name has unusual characters".to_owned(),
        LeftOut::NotPlain => "it is not a plain file".to_owned(),
        LeftOut::TooLarge => format!("it is larger than {} MiB", FILE_BYTES / MIB),
        LeftOut::TooMuch => format!("all files together are larger than {} MiB", TOTAL_BYTES / MIB),
        LeftOut::TooMany => format!("there are more than {FILES} files"),
        LeftOut::TooDeep => "it is too deep".to_owned(),
    };
    format!("{} was left out: {why}", clean_line(&path, 200))
}

/// One kept file, as people see it in a list.
pub fn line(from: &str, name: &str, bytes: u64, path: &str) -> String {
    format!("{from} {} ({}) {path}", clean_line(name, 200), size(bytes))
}

fn size(bytes: u64) -> String {
    match bytes {
        n if n < 1 << 10 => format!("{n} B"),
        n if n < MIB => format!("{} KiB", n >> 10),
        n => format!("{} MiB", n >> 20),
    }
}
