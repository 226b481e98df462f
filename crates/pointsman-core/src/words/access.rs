//! Reasons why a request is refused, for whoever sent it.

use crate::ids::Number;
use crate::text::clean_line;

/// A name from outside is not shown longer than this.
const NAME_CHARS: usize = 100;

/// A session asked for what only people may do.
pub fn for_people(session: &str, what: &str) -> String {
    format!("session {session} may not send `{what}`: that is for a person, from a terminal of their own")
}

/// A session spoke for another one.
pub fn another_session(session: &str, other: &str) -> String {
    format!("session {session} speaks for itself, not for {}", clean_line(other, NAME_CHARS))
}

/// A session asked about another project.
pub fn another_project(session: &str, other: &str) -> String {
    format!("session {session} belongs to another project than {}", clean_line(other, NAME_CHARS))
}

/// The session of the vault's look submitted an action. Each look could be the cause of the next.
pub fn look_submits(session: &str) -> String {
    format!("session {session} reviews vault actions, so it may not submit any")
}

/// A session filed an issue with a label that the daemon acts on.
pub fn steering_label(label: &str) -> String {
    format!(
        "an agent may not file an issue with the label `{}`: file it without, and a person decides whether it is worked on",
        clean_line(label, NAME_CHARS)
    )
}

/// A session has filed as many issues as it may.
pub fn filed_enough(session: &str, limit: u32) -> String {
    format!("session {session} has filed {limit} issues, and limits.session_issues allows no more")
}

/// Sessions of the project have filed as many issues as they may in a day.
pub fn filed_enough_today(limit: u32) -> String {
    format!(
        "sessions of this project have filed {limit} issues within a day, and limits.session_issues_per_day allows no more"
    )
}

/// A session works on an issue that a session filed, which worked on one that a session filed.
pub fn chain_too_deep(session: &str, depth: u32) -> String {
    format!(
        "session {session} wants to file an issue that would be number {depth} in a chain of issues that sessions filed one after the other"
    )
}

/// The same, as the answer to the session.
pub fn asked_about_chain(session: &str) -> String {
    format!(
        "issues that sessions filed led to the issue of session {session}: a person is asked before it may file another one. Go on without it"
    )
}

/// A session asked for another issue, which is closed.
pub fn closed_issue(session: &str, number: Number) -> String {
    format!("session {session} may read its own issue and open ones: issue #{number} is not open")
}

/// A session asked for a list with closed issues in it.
pub fn closed_issues(session: &str) -> String {
    format!("session {session} may list open issues only: use `--state open`")
}

/// A session asked for somebody else's pull request or commit.
pub fn not_its_own(session: &str, what: &str) -> String {
    format!("session {session} may read {what} of its own issue or pull request only")
}

/// A command that was run for a session did not print anything that can be handed on.
pub fn reading_ended(how: impl std::fmt::Display) -> String {
    format!("the command ended without an answer: {how}")
}

/// A session acknowledged a message that another one got.
pub fn not_its_message(session: &str, message: i64) -> String {
    format!("message m-{message} was not sent to session {session}")
}

/// A keeper or launcher sent something that is no report.
pub fn reports_only(who: &str, session: &str, what: &str) -> String {
    format!("the {who} of session {session} may send reports of that session, not `{what}`")
}

/// Another host's runner sent something else than the result of an effect.
pub fn results_only(host: &str, what: &str) -> String {
    let host = clean_line(host, NAME_CHARS);
    format!("the runner of host {host} may send results of its own effects, not `{what}`")
}

/// A token lacks a scope.
pub fn scope_missing(token: &str, scope: &str, what: &str) -> String {
    let token = clean_line(token, NAME_CHARS);
    format!("the token {token} may not send `{what}`: it needs the scope `{scope}`")
}

/// No token may do it.
pub fn never_by_token(what: &str) -> String {
    format!(
        "no token may send `{what}`: that is for a person on the daemon's machine, or for the session itself"
    )
}

/// MCP may not decide about the vault.
pub fn never_by_mcp(what: &str) -> String {
    format!("`{what}` is not possible by MCP: decide about the vault on the command line or on the web")
}

/// The refusal of a caller that may do nothing at all.
pub fn nobody(why: &str, what: &str) -> String {
    format!("`{what}` is refused: {why}")
}

/// The caller is gone, or `/proc` does not show it.
pub const UNSEEN: &str = "the calling process has ended, or /proc does not show it";
/// The caller belongs to another user.
pub const ANOTHER_USER: &str = "the calling process belongs to another user than the daemon";
/// The daemon started the caller: CI, a gate, a review program, a handler, a notifier.
pub const OF_THE_DAEMON: &str =
    "the daemon started the calling process, and programs that the daemon starts have no rights";
/// The caller is in the daemon's tmux server and in no session.
pub const IN_A_TERMINAL: &str =
    "the calling process runs in the daemon's tmux server, but belongs to no known session";
/// The caller carries the mark of programs that are not trusted.
pub const MARKED: &str = "the calling process runs with no_new_privs. Pointsman sets this mark on agents, CI and vault \
                          handlers, and their processes keep it when they detach. If everything in your environment \
                          carries it, start the daemon there too, or call from outside";
/// The daemon is in an environment where everybody carries the mark, and nothing shows that the caller is a person.
pub const NOT_TOLD: &str = "every process here runs with no_new_privs, so the daemon cannot tell a person from a detached \
                            agent. Call from the shell that started the daemon in the foreground, enter the container \
                            again (docker exec), or log in again";
/// The caller's environment names a session that is not there.
pub const STRANGE_SESSION: &str = "POINTSMAN_SESSION names a session that this daemon does not run";

/// The tmux server of an earlier release is still in use.
pub const UNMARKED_TMUX: &str = "the tmux server was started by an earlier release without the mark no_new_privs, so a \
                                 session can use it to start a process that passes for a person. The daemon replaces the \
                                 server once the last session in it has ended";
/// What a person can do about it.
pub const UNMARKED_TMUX_FIX: &str = "let the sessions finish, or end them: pointsman session stop --all";

/// A session, or what belongs to one, would become the daemon.
pub fn daemon_of(whose: &str) -> String {
    format!("{whose} may not start a daemon: a person does, from a terminal of their own")
}

/// A marked process would become the daemon, where the last one was not marked.
pub fn daemon_marked(origin: &str) -> String {
    format!(
        "the daemon does not start: this process runs with no_new_privs, like a detached agent, and the last daemon did \
         not. If you moved the daemon into such an environment on purpose, remove {origin} and start it again"
    )
}

/// A command of the embedded forge, for a project whose forge is somewhere else.
pub fn not_embedded(project: &str) -> String {
    format!("project {project} does not use the embedded forge")
}

/// A question about pull requests, for a project that is only a repository.
pub fn no_forge(project: &str) -> String {
    format!("project {project} is a repository without a forge, so it has no pull requests")
}

/// A run of CI by its number, for a pull request that belongs to no task.
pub fn no_numbered_runs(pull_request: Number) -> String {
    format!(
        "#{pull_request} belongs to no task, so its CI runs have no numbers: leave `--run` out to see the newest log"
    )
}

/// A request is longer than what is read of it.
pub fn too_long(limit_bytes: u64) -> String {
    format!("the request is longer than {} MiB, the limit for this caller", limit_bytes >> 20)
}

/// A line is not a request that this version knows.
pub fn no_request(error: &str) -> String {
    format!("the request cannot be read: {error}")
}

/// The loop did not answer in time.
pub const BUSY: &str = "the daemon is busy or stopping";

/// The name of every caller together.
pub const EVERYBODY: &str = "all callers together";
/// The name of everybody who shares what is not kept for people.
pub const ALL_BUT_PEOPLE: &str = "all callers except people";
/// The name of everything that is no person and no session.
pub const WITHOUT_RIGHTS: &str = "all processes without rights";

/// A caller, or those with whom it shares a limit, hold too many connections.
pub fn too_many_connections(who: &str, limit: usize) -> String {
    format!("{limit} connections are open, the limit for {who}: try again when one of them has been answered")
}

/// A caller, or those with whom it shares a limit, ask too often.
pub fn too_many_requests(who: &str, limit: u32, seconds: u64) -> String {
    format!("{limit} requests came within {seconds} s, the limit for {who}: try again in a moment")
}

/// The record of how the last daemon was started cannot be read.
pub fn broken_origin(path: &str) -> String {
    format!(
        "{path} is not readable. It records how the last daemon was started: remove it, and run `pointsman up`"
    )
}
