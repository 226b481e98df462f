//! Names of git branches: which are allowed, and how a task's branch is named.

use crate::words;

/// Longest branch name we take: a ref is a file, and file names end at 255 bytes.
const MAX_BYTES: usize = 200;

/// Names the rule of git that `name` breaks as a branch, if it breaks one.
///
/// The rules of `git check-ref-format --branch`, and a limit on the length. A valid name is safe as an
/// argument too, because it cannot start with a dash.
pub fn invalid_branch(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some(words::config::BRANCH_EMPTY);
    }
    if name.len() > MAX_BYTES {
        return Some(words::config::BRANCH_TOO_LONG);
    }
    if name.starts_with('-') {
        return Some(words::config::BRANCH_STARTS_WITH_DASH);
    }
    if matches!(name, "@" | "HEAD") {
        return Some(words::config::BRANCH_RESERVED);
    }
    if name.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return Some(words::config::BRANCH_WITH_SPACE);
    }
    if name.contains(['~', '^', ':', '?', '*', '[', '\\']) {
        return Some(words::config::BRANCH_WITH_MARK);
    }
    if name.contains("..") {
        return Some(words::config::BRANCH_WITH_DOTS);
    }
    if name.contains("@{") {
        return Some(words::config::BRANCH_WITH_REFLOG_MARK);
    }
    if name.ends_with('.') {
        return Some(words::config::BRANCH_ENDS_WITH_DOT);
    }
    for part in name.split('/') {
        if part.is_empty() {
            return Some(words::config::BRANCH_WITH_EMPTY_PART);
        }
        if part.starts_with('.') {
            return Some(words::config::BRANCH_PART_HIDDEN);
        }
        if part.ends_with(".lock") {
            return Some(words::config::BRANCH_PART_LOCKED);
        }
    }
    None
}

/// The branch of an issue by the template of `dev.branch`.
pub fn render_branch(template: &str, issue: u64) -> String {
    template.replace("{issue}", &issue.to_string())
}

/// Why a template gives no usable branches beside the primary branch, or nothing if it does.
pub(super) fn invalid_template(template: &str, primary: &str) -> Option<String> {
    if !template.contains("{issue}") {
        return Some(words::config::TEMPLATE_WITHOUT_ISSUE.to_owned());
    }
    if template.replace("{issue}", "").contains(['{', '}']) {
        return Some(words::config::TEMPLATE_PLACEHOLDER.to_owned());
    }
    // The longest number an issue can have decides about the length; the rest does not depend on it.
    let branch = render_branch(template, u64::MAX);
    if let Some(why) = invalid_branch(&branch) {
        return Some(words::config::impossible_branch(why));
    }
    let inside =
        |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    if inside(primary, &branch) || inside(&branch, primary) {
        return Some(words::config::branch_beside_primary(primary));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{invalid_branch, invalid_template, render_branch};

    #[test]
    fn branch_names_follow_gits_rules() {
        for good in
            ["main", "a", "feature/x", "pointsman/issue-1", "ü/1", "a.b", "a@b", "x-", "refs/heads/x", "{x}"]
        {
            assert_eq!(invalid_branch(good), None, "{good}");
        }
        let bad = [
            "",
            "-a",
            "--upload-pack=x",
            "@",
            "HEAD",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{7f}",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "a..b",
            "a@{1}",
            "a.",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
        ];
        for bad in bad {
            assert!(invalid_branch(bad).is_some(), "{bad:?}");
        }
        assert!(invalid_branch(&"a".repeat(201)).is_some());
    }

    #[test]
    fn a_template_names_one_branch_per_issue() {
        assert_eq!(render_branch("pointsman/issue-{issue}", 7), "pointsman/issue-7");
        assert_eq!(invalid_template("pointsman/issue-{issue}", "main"), None);
        assert_eq!(invalid_template("{issue}", "main"), None);
        let cases = [
            ("pointsman/issue", "main", "must contain"),
            ("p/{issue}-{title}", "main", "only placeholder"),
            ("p/{issue}.lock", "main", ".lock"),
            ("-{issue}", "main", "starts with"),
            ("main/{issue}", "main", "beside the primary branch"),
            ("a {issue}", "main", "space"),
        ];
        for (template, primary, why) in cases {
            let error = invalid_template(template, primary).unwrap();
            assert!(error.contains(why), "{template}: {error}");
        }
    }
}
