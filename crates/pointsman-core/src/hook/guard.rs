//! A look at a command before the agent runs it: a hint that saves it a detour.
//!
//! This is no boundary. A command can be spelt in a thousand ways, and most of them pass here. What an agent cannot do is
//! decided by the gateway (which takes only its own branch), by the forge and by the file system.

use crate::words;

/// Words in front of a command that change nothing about what it does.
const PREFIXES: [&str; 7] = ["sudo", "env", "command", "exec", "nohup", "time", "then"];
/// Directories that nobody empties on purpose.
const PRECIOUS: [&str; 12] =
    ["/", "/*", "~", "~/", "~/*", "$HOME", "$HOME/", "$HOME/*", "/home", "/etc", "/usr", "/var"];

/// The reason why the agent should not run this command, if there is one.
pub fn objection(command: &str, primary_branch: &str) -> Option<String> {
    command.split(['\n', ';', '&', '|', '(', ')', '`']).find_map(|part| {
        let words: Vec<&str> = part
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .skip_while(|word| PREFIXES.contains(word) || is_assignment(word))
            .collect();
        let (program, rest) = words.split_first()?;
        let program = program.rsplit('/').next().unwrap_or(program);
        match program {
            "rm" => removes_everything(rest),
            "git" => pushes_to(rest, primary_branch),
            "tmux" if rest.contains(&"kill-server") => Some(words::guard::ENDS_OTHER_SESSIONS.to_owned()),
            "dd" if rest.iter().any(|word| word.starts_with("of=/dev/") && *word != "of=/dev/null") => {
                Some(words::guard::OVERWRITES_DEVICE.to_owned())
            }
            name if name == "mkfs" || name.starts_with("mkfs.") => Some(words::guard::FORMATS.to_owned()),
            "shutdown" | "reboot" | "poweroff" | "halt" => Some(words::guard::SHUTS_DOWN.to_owned()),
            _ => None,
        }
    })
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn removes_everything(words: &[&str]) -> Option<String> {
    let flag = |short: [char; 2], long: &str| {
        words.iter().any(|w| *w == long || (w.starts_with('-') && !w.starts_with("--") && w.contains(short)))
    };
    let recursive = flag(['r', 'R'], "--recursive");
    let target = words.iter().find(|word| PRECIOUS.contains(word));
    match target {
        Some(target) if recursive => Some(words::guard::removes_everything(target)),
        Some(_) | None => None,
    }
}

fn pushes_to(words: &[&str], primary: &str) -> Option<String> {
    let mut rest = words.iter().copied();
    // Options of git itself, some with a value of their own.
    let verb = loop {
        match rest.next()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" => drop(rest.next()),
            word if word.starts_with('-') => {}
            word => break word,
        }
    };
    if verb != "push" {
        return None;
    }
    let words: Vec<&str> = rest.collect();
    let to_primary = |word: &&&str| {
        let target = word.trim_start_matches('+');
        let target = target.rsplit_once(':').map_or(target, |(_, target)| target);
        target.strip_prefix("refs/heads/").unwrap_or(target) == primary
    };
    if words.iter().any(|word| matches!(*word, "--mirror" | "--all" | "--prune")) {
        return Some(words::guard::MOVES_OTHER_BRANCHES.to_owned());
    }
    // The first word that is no option names the remote.
    let refspecs = words.iter().filter(|word| !word.starts_with('-')).skip(1);
    refspecs.filter(to_primary).map(|_| ()).next().map(|()| words::guard::pushes_to_primary(primary))
}

#[cfg(test)]
mod tests {
    use super::objection;

    #[test]
    fn what_destroys_is_objected_to() {
        for command in [
            "rm -rf /",
            "cd /tmp && sudo rm -fr /*",
            "rm --recursive --force ~",
            "FOO=1 /bin/rm -r -f \"$HOME\"",
            "git push --force origin main",
            "git push -f origin HEAD:main",
            "git -C tree -c a=b push origin +HEAD:refs/heads/main",
            "git push origin :main",
            "git push --mirror",
            "true; git push origin main",
            "mkfs.ext4 /dev/sda1",
            "dd if=/dev/zero of=/dev/sda",
            "tmux -L x kill-server",
        ] {
            assert!(objection(command, "main").is_some(), "{command}");
        }
    }

    #[test]
    fn everyday_commands_pass() {
        for command in [
            "rm -rf target",
            "rm -rf ./build /tmp/x",
            "rm /etc",
            "git push origin HEAD",
            "git push --force-with-lease origin HEAD",
            "git push -u origin maintenance",
            "git commit -m 'git push origin main'",
            "git log main",
            "dd if=a of=/dev/null",
            "echo rm -rf /",
            "",
        ] {
            assert_eq!(objection(command, "main"), None, "{command}");
        }
    }
}
