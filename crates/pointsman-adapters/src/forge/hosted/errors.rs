//! Sorting trouble, marks in comments, cutting texts.

use pointsman_core::forge::Comment;
use pointsman_core::ids::Sha;
use pointsman_core::words;

use crate::forge::Error;
use crate::http::{self, ErrorKind};
use crate::retry::Retry;

/// The longest text we write, in bytes; GitHub takes no more than 65,536 characters.
pub(in crate::forge) const LONGEST_BODY: usize = 60_000;
/// The longest title, in characters.
pub(in crate::forge) const TITLE_CHARS: usize = 250;

/// Sorts what went wrong. Every order looks first, so what must be looked at may simply be given again.
pub(in crate::forge) fn told(error: http::Error) -> Error {
    let operation = error.operation;
    match (error.status(), &error.trouble) {
        // It will be accepted again when somebody has renewed it; until then nothing is given up.
        (Some(401), _) => Error::Unavailable {
            reason: format!(
                "{error}: the token is not accepted (any more); see token_env, token_file, token_command"
            ),
        },
        (Some(404 | 410), _) => {
            Error::NotFound { what: format!("such thing to {operation}, or our account may not see it") }
        }
        (Some(403), _) => {
            Error::Refused { operation, reason: format!("our account may not do that ({})", error.words()) }
        }
        // A proxy that wants a login: it is in the way today, not for ever.
        (None, ErrorKind::Moved { .. }) => Error::Unavailable { reason: error.to_string() },
        _ => match error.retry() {
            Retry::Later | Retry::LookFirst => Error::Unavailable { reason: error.to_string() },
            Retry::Never => Error::Refused { operation, reason: error.to_string() },
        },
    }
}

/// What stands in the way of opening is for a person to change; nothing is given up for it.
pub(in crate::forge) fn in_the_way(error: Error) -> Error {
    match error {
        Error::Refused { .. } | Error::NotFound { .. } => Error::Unavailable { reason: error.to_string() },
        Error::Unavailable { .. } => error,
    }
}

/// Our own text, not longer than it may be.
pub(in crate::forge) fn cut(text: &str, limit: usize) -> &str {
    match text.len() > limit {
        true => &text[..(0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)],
        false => text,
    }
}

/// A comment of ours with its mark, or nothing if it is there already. Only the end of a comment counts: before it
/// ours quote what agents wrote, which may look like a mark.
pub(in crate::forge) fn unless_there(
    comments: &[Comment],
    me: &str,
    marker: &str,
    body: &str,
) -> Option<String> {
    let mark = words::comment::marker(marker);
    let ours = |c: &Comment| c.author == me && c.body.trim_end().ends_with(&mark);
    (!comments.iter().any(ours)).then(|| format!("{}\n\n{mark}", cut(body, LONGEST_BODY)))
}

/// The mark of a comment that names the commit a pull request landed as.
pub(in crate::forge) fn landed_mark(sha: &Sha) -> String {
    format!("landed:{sha}")
}

/// The commit that a comment of ours names as the landing.
pub(in crate::forge) fn landed_as(comments: &[Comment], me: &str) -> Option<Sha> {
    let ours = comments.iter().rev().filter(|comment| comment.author == me);
    let named = |body: &str| {
        let (_, mark) = body.trim_end().rsplit_once("<!-- pointsman:landed:")?;
        Sha::new(mark.strip_suffix(" -->")?)
    };
    ours.filter_map(|comment| named(&comment.body)).next()
}

#[cfg(test)]
mod tests {
    use pointsman_core::forge::Comment;
    use pointsman_core::ids::Sha;
    use pointsman_core::time::Timestamp;
    use pointsman_core::words;

    use super::{landed_as, landed_mark, unless_there};

    fn comment(author: &str, body: &str) -> Comment {
        Comment { id: 1, author: author.to_owned(), body: body.to_owned(), at: Timestamp(0) }
    }

    #[test]
    fn a_landing_is_read_back_from_the_end_of_a_comment_of_ours_alone() {
        let sha = Sha::new(&"a".repeat(40)).unwrap();
        let mark = words::comment::marker(&landed_mark(&sha));
        let told = |author: &str, body: String| landed_as(&[comment(author, &body)], "me");
        assert_eq!(told("me", format!("Landed.\n\n{mark}\n")), Some(sha));
        assert_eq!(told("eve", format!("Landed.\n\n{mark}")), None);
        assert_eq!(told("me", format!("{mark}\nquoted above")), None);
        assert_eq!(told("me", "no mark".to_owned()), None);
    }

    #[test]
    fn a_comment_that_is_there_is_not_written() {
        let there =
            [comment("me", "text\n\n<!-- pointsman:m -->\r\n"), comment("eve", "x <!-- pointsman:n -->")];
        assert_eq!(unless_there(&there, "me", "m", "text"), None);
        assert_eq!(unless_there(&there, "me", "n", "text").as_deref(), Some("text\n\n<!-- pointsman:n -->"));
    }
}
