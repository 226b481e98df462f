//! The position of a reader of the log, in every project.
//!
//! Events have a number in their project. Whoever follows several projects keeps one position for each, because nobody
//! hands out numbers over all of them where several hosts write. The text of a cursor is for programs to keep and to give
//! back, and not to be looked into.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::ids::ProjectName;

/// What every cursor begins with.
const MARK: &str = "c1:";

/// One position per project: the number of the last event that was read there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Events of no project are under none.
    positions: BTreeMap<Option<ProjectName>, i64>,
}

impl Cursor {
    /// The last event that was read in a project; 0 if none was.
    pub fn position(&self, project: Option<&ProjectName>) -> i64 {
        self.positions.get(&project.cloned()).copied().unwrap_or(0)
    }

    /// An event was read.
    pub fn advance(&mut self, project: Option<&ProjectName>, project_seq: i64) {
        let position = self.positions.entry(project.cloned()).or_insert(0);
        *position = (*position).max(project_seq);
    }

    /// Every position there is.
    pub fn positions(&self) -> impl Iterator<Item = (Option<&ProjectName>, i64)> {
        self.positions.iter().map(|(project, position)| (project.as_ref(), *position))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)?;
        for (place, (project, position)) in self.positions.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let project = project.as_ref().map_or("", ProjectName::as_str);
            write!(f, "{comma}{project}@{position}")?;
        }
        Ok(())
    }
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of the event log")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let listed = text.strip_prefix(MARK).ok_or(NoCursor)?;
        let mut cursor = Self::default();
        for part in listed.split(',').filter(|part| !part.is_empty()) {
            let (project, position) = part.split_once('@').ok_or(NoCursor)?;
            let project = match project {
                "" => None,
                name => Some(ProjectName::new(name).ok_or(NoCursor)?),
            };
            let position = position.parse().ok().filter(|position| *position >= 0).ok_or(NoCursor)?;
            if cursor.positions.insert(project, position).is_some() {
                return Err(NoCursor);
            }
        }
        Ok(cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, NoCursor};
    use crate::ids::ProjectName;

    #[test]
    fn a_cursor_comes_back_from_its_text() {
        let (shop, harbour) = (ProjectName::new("shop"), ProjectName::new("harbour-2"));
        let mut cursor = Cursor::default();
        assert_eq!(cursor.to_string().parse(), Ok(Cursor::default()));
        for (project, seq) in [(&shop, 12), (&harbour, 4), (&None, 1), (&shop, 7)] {
            cursor.advance(project.as_ref(), seq);
        }
        assert_eq!(cursor.position(shop.as_ref()), 12, "it never goes back");
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        let nobody = ProjectName::new("nobody");
        assert_eq!((cursor.position(None), cursor.position(nobody.as_ref())), (1, 0));
        for text in
            ["", "12", "c1", "c2:shop@1", "c1:shop", "c1:shop@-1", "c1:SHOP@1", "c1:a@1,a@2", "c1:a@x"]
        {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
