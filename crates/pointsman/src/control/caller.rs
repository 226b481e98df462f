//! The identity of a caller, from what the kernel says about its process. Nothing here looks at the world;
//! `daemon/peers.rs` does.
//!
//! The order of the questions is the security of it. A process is first what its ancestors make it. Only one with no
//! ancestor of ours, without the mark of foreign programs, can be a person. Whatever is uncertain is [`Caller::Other`],
//! which may do nothing.

use std::fmt;

use pointsman_adapters::process::Process;
use pointsman_adapters::process::lineage::{Lineage, Top};
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::role::Role;
use pointsman_core::words;
use serde::{Deserialize, Serialize};

/// Everybody who can ask. A closed list: [`access::may`](super::access::may) knows all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Somebody with a login on this machine, under its name.
    Person {
        name: String,
    },
    Session(OwnSession),
    /// The process that runs a session without a terminal.
    Keeper {
        session: String,
    },
    /// The process that becomes the agent. It has the agent's pid, so no caller is identified as one yet; a socket per
    /// session will tell them apart.
    Launcher {
        session: String,
    },
    /// The runner of another host.
    Runner {
        host: String,
    },
    /// A token of the web, the API or MCP; it speaks for a person of this name.
    Token {
        name: String,
        scopes: Scopes,
        channel: Channel,
    },
    Other(Unknown),
}

/// A session that asks, with the things that are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSession {
    pub session: String,
    pub role: Role,
    pub project: ProjectName,
    pub issue: Option<Number>,
    pub pr: Option<Number>,
    /// The head of its pull request: the commit whose checks are its own.
    pub head: Option<Sha>,
}

/// The scopes of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    pub read: bool,
    pub order: bool,
    pub approve: bool,
}

/// The way by which a token came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Web,
    Api,
    Mcp,
}

/// The reason why a caller is not identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It has ended, or cannot be looked at.
    Unseen,
    AnotherUser,
    OfTheDaemon,
    /// It is in the daemon's tmux server, in no session.
    InATerminal,
    /// It is marked as foreign, and detached.
    Marked,
    /// Everybody is marked here, and nothing shows that it is a person.
    NotTold,
    /// Its environment names a session that is not there.
    StrangeSession,
}

impl Caller {
    /// The name under which this caller writes on the forge.
    pub fn author(&self) -> String {
        match self {
            Self::Person { name } | Self::Token { name, .. } => name.clone(),
            Self::Session(own) => own.session.clone(),
            Self::Keeper { .. } | Self::Launcher { .. } | Self::Runner { .. } | Self::Other(_) => {
                self.to_string()
            }
        }
    }
}

impl Unknown {
    /// Whether the next look may identify the same caller: it could not be looked at, or tmux or the store did not answer.
    pub fn may_pass(self) -> bool {
        match self {
            Self::Unseen | Self::InATerminal | Self::StrangeSession => true,
            Self::AnotherUser | Self::OfTheDaemon | Self::Marked | Self::NotTold => false,
        }
    }

    /// The sentence for whoever asked.
    pub fn why(self) -> &'static str {
        match self {
            Self::Unseen => words::access::UNSEEN,
            Self::AnotherUser => words::access::ANOTHER_USER,
            Self::OfTheDaemon => words::access::OF_THE_DAEMON,
            Self::InATerminal => words::access::IN_A_TERMINAL,
            Self::Marked => words::access::MARKED,
            Self::NotTold => words::access::NOT_TOLD,
            Self::StrangeSession => words::access::STRANGE_SESSION,
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { name } => write!(f, "{name}"),
            Self::Session(own) => write!(f, "session {}", own.session),
            Self::Keeper { session } => write!(f, "the keeper of session {session}"),
            Self::Launcher { session } => write!(f, "the launcher of session {session}"),
            Self::Runner { host } => write!(f, "the runner of host {host}"),
            Self::Token { name, .. } => write!(f, "a token of {name}"),
            Self::Other(_) => write!(f, "an unidentified process"),
        }
    }
}

/// The kernel's facts about a calling process.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    pub uid: u32,
    pub lineage: Lineage,
    /// It, and all that it starts, can gain no privileges.
    pub marked: bool,
    /// Ancestors that belong to another user; looked for only where everybody is marked.
    pub foreign: Vec<Process>,
    /// The session that its environment names.
    pub names: Option<String>,
}

/// The processes that a daemon descends from, written down when it starts. Commands read it when no daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The daemon itself carries the mark: then so does everybody around it.
    pub marked: bool,
    pub ancestors: Vec<Process>,
    /// Those of them that adopt nothing of ours: what descends from one of these was started from there.
    pub near: Vec<Process>,
}

/// The processes of Pointsman that a line of ancestors can meet.
#[derive(Clone, Debug, Default)]
pub struct OwnProcesses {
    /// Whom the daemon runs as.
    pub uid: u32,
    pub daemon: Option<Process>,
    pub tmux: Option<Process>,
    pub sessions: Vec<SessionProcess>,
    /// None if no daemon has ever run here: then nothing was ever started that could pass for a person.
    pub origin: Option<Origin>,
}

/// The first process of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionProcess {
    pub process: Process,
    pub session: String,
    pub runtime: SessionProcessKind,
}

/// The kind of process that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionProcessKind {
    /// The agent, in a pane of tmux.
    Pane,
    Keeper,
}

/// A caller as far as processes show it. The name of a person and the things of a session are looked up with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerKind {
    Person { uid: u32 },
    Session(String),
    Keeper(String),
    Other(Unknown),
}

/// Identifies who asks.
pub fn identify(seen: &ProcessFacts, known: &OwnProcesses) -> CallerKind {
    if seen.uid != known.uid && seen.uid != 0 {
        return CallerKind::Other(Unknown::AnotherUser);
    }
    let line = &seen.lineage.processes;
    // The nearest one counts; it is at the beginning of the line only if it asks itself.
    for (at, process) in line.iter().enumerate() {
        if let Some(running) = known.sessions.iter().find(|running| running.process == *process) {
            return match running.runtime {
                SessionProcessKind::Keeper if at == 0 => CallerKind::Keeper(running.session.clone()),
                SessionProcessKind::Keeper | SessionProcessKind::Pane => {
                    CallerKind::Session(running.session.clone())
                }
            };
        }
    }
    if known.daemon.is_some_and(|daemon| line.contains(&daemon)) {
        return CallerKind::Other(Unknown::OfTheDaemon);
    }
    if known.tmux.is_some_and(|tmux| line.contains(&tmux)) {
        return CallerKind::Other(Unknown::InATerminal);
    }
    // Who is not marked was never started by anything that is.
    if seen.marked
        && let Some(origin) = &known.origin
    {
        if !origin.marked {
            return CallerKind::Other(Unknown::Marked);
        }
        if !is_persons(seen, known, origin) {
            return CallerKind::Other(Unknown::NotTold);
        }
    }
    match &seen.names {
        None => CallerKind::Person { uid: seen.uid },
        // Whoever says to be in a session gets less than a person, never more than nothing.
        Some(session) => CallerKind::Session(session.clone()),
    }
}

/// Whether a marked process is a person's, where everybody is marked. What an agent, CI or a handler leaves behind is
/// adopted by the reaper of the daemon's line, so a line that shows one of these was not left behind:
///
/// * it meets an ancestor of the daemon that is nearer than the reaper;
/// * it comes from outside of the pid namespace: nobody inside can get such a parent;
/// * it meets a process of another user that is no ancestor of the daemon, such as a login. Only root can make that up,
///   so it tells nothing to a daemon of root's.
fn is_persons(seen: &ProcessFacts, known: &OwnProcesses, origin: &Origin) -> bool {
    let line = &seen.lineage.processes;
    let entered = match seen.lineage.top {
        Top::Outside => !line.last().is_some_and(|top| origin.ancestors.contains(top)),
        Top::Init | Top::Hidden => false,
    };
    let logged_in = known.uid != 0
        && seen.foreign.iter().any(|process| process.pid != 1 && !origin.ancestors.contains(process));
    entered || logged_in || line.iter().any(|process| origin.near.contains(process))
}

#[cfg(test)]
mod tests {
    use pointsman_adapters::process::Process;
    use pointsman_adapters::process::lineage::{Lineage, Top};

    use super::{
        CallerKind, Origin, OwnProcesses, ProcessFacts, SessionProcess, SessionProcessKind, Unknown, identify,
    };

    const UID: u32 = 1000;
    const INIT: Process = process(1);
    const DAEMON: Process = process(100);
    const TMUX: Process = process(110);
    const PANE: Process = process(120);
    const KEEPER: Process = process(130);
    const SHELL: Process = process(50);
    const REAPER: Process = process(40);
    const LOGIN: Process = process(45);

    const fn process(pid: u32) -> Process {
        Process { pid, start_time: 7 }
    }

    fn line(processes: &[Process]) -> ProcessFacts {
        let mut all = vec![process(999)];
        all.extend_from_slice(processes);
        let lineage = Lineage { processes: all, top: Top::Init };
        ProcessFacts { uid: UID, lineage, marked: false, foreign: Vec::new(), names: None }
    }

    fn marked(processes: &[Process]) -> ProcessFacts {
        ProcessFacts { marked: true, ..line(processes) }
    }

    fn known(origin_marked: bool) -> OwnProcesses {
        let session = |process, session: &str, runtime| SessionProcess {
            process,
            session: session.to_owned(),
            runtime,
        };
        OwnProcesses {
            uid: UID,
            daemon: Some(DAEMON),
            tmux: Some(TMUX),
            sessions: vec![
                session(PANE, "dev-shop-1.1", SessionProcessKind::Pane),
                session(KEEPER, "dev-shop-2.1", SessionProcessKind::Keeper),
            ],
            origin: Some(Origin {
                marked: origin_marked,
                ancestors: vec![SHELL, REAPER, INIT],
                near: vec![SHELL],
            }),
        }
    }

    const PERSON: CallerKind = CallerKind::Person { uid: UID };

    fn session(name: &str) -> CallerKind {
        CallerKind::Session(name.to_owned())
    }

    #[test]
    fn a_process_is_what_its_nearest_ancestor_of_ours_makes_it() {
        for at_home in [false, true] {
            let known = known(at_home);
            let identify = |seen: &ProcessFacts| identify(seen, &known);
            assert_eq!(identify(&marked(&[PANE, TMUX, INIT])), session("dev-shop-1.1"));
            assert_eq!(identify(&line(&[PANE, TMUX, INIT])), session("dev-shop-1.1"), "of an older release");
            assert_eq!(identify(&marked(&[process(131), KEEPER, DAEMON, SHELL])), session("dev-shop-2.1"));
            assert_eq!(
                identify(&marked(&[process(140), DAEMON, SHELL])),
                CallerKind::Other(Unknown::OfTheDaemon)
            );
            assert_eq!(
                identify(&line(&[process(140), DAEMON, SHELL])),
                CallerKind::Other(Unknown::OfTheDaemon)
            );
            assert_eq!(identify(&line(&[process(150), TMUX, INIT])), CallerKind::Other(Unknown::InATerminal));
            let mut keeper = marked(&[]);
            keeper.lineage.processes = vec![KEEPER, DAEMON, SHELL];
            assert_eq!(identify(&keeper), CallerKind::Keeper("dev-shop-2.1".to_owned()));
            let reused = Process { start_time: 8, ..PANE };
            assert_ne!(
                identify(&marked(&[reused, INIT])),
                session("dev-shop-1.1"),
                "the pid was given out again"
            );
        }
    }

    #[test]
    fn a_person_has_no_mark_and_no_ancestor_of_ours() {
        for at_home in [false, true] {
            assert_eq!(identify(&line(&[SHELL, INIT]), &known(at_home)), PERSON);
            assert_eq!(identify(&line(&[INIT]), &known(at_home)), PERSON);
        }
        assert_eq!(identify(&marked(&[INIT]), &known(false)), CallerKind::Other(Unknown::Marked));
        assert_eq!(identify(&marked(&[SHELL, INIT]), &known(false)), CallerKind::Other(Unknown::Marked));
        let nobody_yet = OwnProcesses { origin: None, daemon: None, ..known(false) };
        assert_eq!(identify(&marked(&[INIT]), &nobody_yet), PERSON, "no daemon has ever run here");
    }

    #[test]
    fn where_everybody_is_marked_a_person_is_one_that_no_orphan_can_pretend_to_be() {
        let known = known(true);
        let other = CallerKind::Other(Unknown::NotTold);
        assert_eq!(identify(&marked(&[INIT]), &known), other, "detached");
        assert_eq!(identify(&marked(&[REAPER, INIT]), &known), other, "adopted");
        assert_eq!(identify(&marked(&[SHELL, REAPER, INIT]), &known), PERSON, "beside the daemon");
        let mut entered = marked(&[process(60)]);
        entered.lineage.top = Top::Outside;
        assert_eq!(identify(&entered, &known), PERSON, "docker exec");
        entered.lineage.processes.push(REAPER);
        assert_eq!(identify(&entered, &known), other, "what an ancestor of the daemon has adopted");
        let mut hidden = marked(&[process(60)]);
        hidden.lineage.top = Top::Hidden;
        assert_eq!(identify(&hidden, &known), other);
        let login = ProcessFacts { foreign: vec![LOGIN, INIT], ..marked(&[process(46), LOGIN, INIT]) };
        assert_eq!(identify(&login, &known), PERSON, "logged in");
        let of_init = ProcessFacts { foreign: vec![INIT, REAPER], ..marked(&[REAPER, INIT]) };
        assert_eq!(identify(&of_init, &known), other, "adopted by root's reaper");
        let roots = OwnProcesses { uid: 0, ..known };
        assert_eq!(
            identify(&ProcessFacts { uid: 0, ..login }, &roots),
            other,
            "an agent of root's can be anybody"
        );
    }

    #[test]
    fn another_user_is_refused_and_root_is_a_person() {
        let known = known(false);
        assert_eq!(
            identify(&ProcessFacts { uid: 1001, ..line(&[INIT]) }, &known),
            CallerKind::Other(Unknown::AnotherUser)
        );
        assert_eq!(
            identify(&ProcessFacts { uid: 0, ..line(&[INIT]) }, &known),
            CallerKind::Person { uid: 0 }
        );
        assert_eq!(
            identify(&ProcessFacts { uid: 0, ..line(&[PANE, INIT]) }, &known),
            session("dev-shop-1.1")
        );
    }

    #[test]
    fn whoever_writes_for_a_person_writes_under_their_name() {
        let (scopes, channel) = (super::Scopes::default(), super::Channel::Web);
        let token = super::Caller::Token { name: "ann".to_owned(), scopes, channel };
        assert_eq!((token.author(), token.to_string()), ("ann".to_owned(), "a token of ann".to_owned()));
        assert_eq!(super::Caller::Person { name: "ann".to_owned() }.author(), "ann");
    }

    #[test]
    fn a_variable_takes_rights_away_and_gives_none() {
        let named = |seen: ProcessFacts| ProcessFacts { names: Some("dev-shop-9.1".to_owned()), ..seen };
        let known = known(false);
        assert_eq!(identify(&named(line(&[SHELL, INIT])), &known), session("dev-shop-9.1"));
        assert_eq!(identify(&named(marked(&[INIT])), &known), CallerKind::Other(Unknown::Marked));
        assert_eq!(identify(&named(marked(&[PANE, TMUX, INIT])), &known), session("dev-shop-1.1"));
        assert_eq!(identify(&named(line(&[DAEMON, INIT])), &known), CallerKind::Other(Unknown::OfTheDaemon));
    }
}
