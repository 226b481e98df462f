//! The access rule: one function over every caller and every request, asked once, before anything is done.
//!
//! No answer means no. A new request does not compile before every caller has a rule for it here. The rules are those of
//! docs/security.md, whose table is compared with this function by a test. [`caller`](super::caller) identifies the
//! caller.

use pointsman_core::forge::StateFilter;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::labels;
use pointsman_core::task::ReviewVerdict;
use pointsman_core::words;

use super::caller::{Caller, Channel, OwnSession, Scopes};
use super::protocol::{
    ClaimOrder, Fix, ForgeCommand, HandoverCommand, InboxCommand, QueueCommand, Reading, Request, RunCommand,
    VaultCommand, WebCommand,
};

/// The answer to whether a request is allowed.
#[derive(Clone, Debug)]
pub enum Access {
    /// It is carried out as it stands here: names in it are those of the caller, whatever it said.
    Allowed(Box<Request>),
    /// The same, if this holds as well, which only the store or the forge know.
    AllowedIf(Box<Request>, Condition),
    /// It is not carried out; the sentence says why.
    Refused(String),
}

/// A fact that must hold for a session's request and that the request itself does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The message was sent to this session.
    MessageIsOwn(i64),
    /// Another issue than its own is open.
    IssueIsOpen(Number),
    /// It has filed fewer issues than `limits.session_issues`.
    MayFile,
}

/// Whether a caller may ask this.
pub fn may(caller: &Caller, request: &Request) -> Access {
    match caller {
        Caller::Person { name } => Access::Allowed(Box::new(in_the_name_of(name, request))),
        Caller::Session(own) => session(own, request),
        Caller::Keeper { session } => reporter("keeper", session, request),
        Caller::Launcher { session } => reporter("launcher", session, request),
        Caller::Runner { host } => Access::Refused(words::access::results_only(host, &name_of(request))),
        Caller::Token { name, scopes, channel } => token(name, *scopes, *channel, request),
        Caller::Other(unknown) => Access::Refused(words::access::nobody(unknown.why(), &name_of(request))),
    }
}

/// A request's name, as in the table of docs/security.md: `answer`, `forge create_issue`.
pub fn name_of(request: &Request) -> String {
    let value = serde_json::to_value(request).unwrap_or_default();
    let word =
        |value: &serde_json::Value, key: &str| value.get(key).and_then(|v| v.as_str()).map(str::to_owned);
    let name = word(&value, "request").unwrap_or_default();
    let inner =
        ["command", "order", "what"].iter().find_map(|key| value.get(*key)?.as_object()).and_then(|inner| {
            ["forge", "queue", "run", "vault", "claim", "inbox", "read", "handover", "web"]
                .iter()
                .find_map(|tag| inner.get(*tag)?.as_str())
        });
    match inner {
        Some(inner) => format!("{name} {inner}"),
        None => name,
    }
}

/// Whether a request decides something that only the people of `[people]` may decide: an approval, an answer, a settled
/// question.
pub fn is_decision(request: &Request) -> bool {
    match request {
        Request::Answer { .. } | Request::Inbox { .. } => true,
        Request::Vault { command, .. } => match command {
            VaultCommand::Approve { .. } | VaultCommand::Reject { .. } => true,
            VaultCommand::Submit { .. } | VaultCommand::Raise { .. } => false,
        },
        Request::Forge { command, .. } => match command {
            ForgeCommand::Review { .. } | ForgeCommand::MergePull { .. } => true,
            ForgeCommand::CreateIssue { .. }
            | ForgeCommand::CreatePull { .. }
            | ForgeCommand::Comment { .. }
            | ForgeCommand::ListIssues { .. }
            | ForgeCommand::ShowIssue { .. }
            | ForgeCommand::Label { .. }
            | ForgeCommand::SetIssueOpen { .. }
            | ForgeCommand::ListPulls { .. }
            | ForgeCommand::ShowPull { .. }
            | ForgeCommand::ClosePull { .. }
            | ForgeCommand::ListBoard
            | ForgeCommand::SetBoard { .. }
            | ForgeCommand::ListChecks { .. }
            | ForgeCommand::SetCheck { .. } => false,
        },
        Request::Status
        | Request::Down
        | Request::Halt { .. }
        | Request::Resume
        | Request::Order { .. }
        | Request::Queue { .. }
        | Request::Run { .. }
        | Request::Claim { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Measure { .. }
        | Request::Hook { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Handover { .. }
        | Request::Web { .. }
        | Request::Read { .. } => false,
    }
}

/// The same request, said by this person.
fn in_the_name_of(name: &str, request: &Request) -> Request {
    let name = || name.to_owned();
    let mut request = request.clone();
    match &mut request {
        Request::Answer { by, .. } | Request::Halt { by } => *by = name(),
        Request::Queue { command, .. } => match command {
            QueueCommand::Add { by, .. }
            | QueueCommand::Enter { by, .. }
            | QueueCommand::Sync { by, .. }
            | QueueCommand::Synced { by, .. }
            | QueueCommand::Retest { by, .. }
            | QueueCommand::Forget { by, .. }
            | QueueCommand::Undo { by, .. }
            | QueueCommand::Remove { by, .. } => {
                *by = name();
            }
            QueueCommand::Try { .. }
            | QueueCommand::Pause { .. }
            | QueueCommand::Resume
            | QueueCommand::Look => {}
        },
        Request::Run { command, .. } => match command {
            RunCommand::Start { by, .. } | RunCommand::Stop { by, .. } => *by = name(),
            RunCommand::StepDone { .. } => {}
        },
        Request::Vault { command, .. } => match command {
            // Nobody submits for a session: the source is then what the action itself says.
            VaultCommand::Submit { from, .. } => *from = None,
            VaultCommand::Approve { by, .. }
            | VaultCommand::Reject { by, .. }
            | VaultCommand::Raise { by, .. } => {
                *by = name();
            }
        },
        Request::Inbox { command, .. } => match command {
            InboxCommand::Approve { by }
            | InboxCommand::Reject { by, .. }
            | InboxCommand::Answer { by, .. }
            | InboxCommand::Dismiss { by } => *by = name(),
        },
        Request::Forge { command, .. } => match command {
            ForgeCommand::CreateIssue { author, .. }
            | ForgeCommand::CreatePull { author, .. }
            | ForgeCommand::Comment { author, .. }
            | ForgeCommand::Review { author, .. } => *author = name(),
            ForgeCommand::ListIssues { .. }
            | ForgeCommand::ShowIssue { .. }
            | ForgeCommand::Label { .. }
            | ForgeCommand::SetIssueOpen { .. }
            | ForgeCommand::ListPulls { .. }
            | ForgeCommand::ShowPull { .. }
            | ForgeCommand::ClosePull { .. }
            | ForgeCommand::MergePull { .. }
            | ForgeCommand::ListBoard
            | ForgeCommand::SetBoard { .. }
            | ForgeCommand::ListChecks { .. }
            | ForgeCommand::SetCheck { .. } => {}
        },
        Request::Handover { command, .. } => match command {
            HandoverCommand::Take { by, .. }
            | HandoverCommand::Give { by, .. }
            | HandoverCommand::Given { by, .. } => *by = name(),
            HandoverCommand::Fetch { .. } => {}
        },
        Request::Web { command } => match command {
            WebCommand::Link { by } | WebCommand::CreateToken { by, .. } => *by = name(),
            WebCommand::ListTokens | WebCommand::RevokeToken { .. } => {}
        },
        Request::Claim { order, .. } => match order {
            ClaimOrder::Take { by, .. } => *by = name(),
            ClaimOrder::HandIn { .. }
            | ClaimOrder::CheckPushed { .. }
            | ClaimOrder::Sync { .. }
            | ClaimOrder::Look { .. }
            | ClaimOrder::Finish { .. }
            | ClaimOrder::Release { .. }
            | ClaimOrder::Board => {}
        },
        Request::Status
        | Request::Down
        | Request::Resume
        | Request::Order { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Measure { .. }
        | Request::Hook { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Read { .. } => {}
    }
    request
}

/// A session, about itself.
fn session(own: &OwnSession, request: &Request) -> Access {
    let me = &own.session;
    let allowed = |request: Request| Access::Allowed(Box::new(request));
    let for_people = || Access::Refused(words::access::for_people(me, &name_of(request)));
    let about = |named: &str| match named == me {
        true => allowed(request.clone()),
        false => Access::Refused(words::access::another_session(me, named)),
    };
    match request {
        Request::Acknowledge { message, .. } => {
            let request = Request::Acknowledge { message: *message, session: Some(me.clone()) };
            match message {
                // The prompt, which every session gets.
                0 => allowed(request),
                _ => Access::AllowedIf(Box::new(request), Condition::MessageIsOwn(*message)),
            }
        }
        Request::Checkpoint { session, .. } | Request::Measure { session, .. } => about(session),
        Request::Hook { report } => about(&report.session),
        Request::Run { project, command } => match command {
            RunCommand::StepDone { session, .. } => in_project(own, project, || about(session)),
            RunCommand::Start { .. } | RunCommand::Stop { .. } => for_people(),
        },
        Request::Vault { project, command } => {
            let said = |command| allowed(Request::Vault { project: project.clone(), command });
            match command {
                VaultCommand::Submit { text, .. } => {
                    in_project(own, project, || match own.role.submits_to_vault() {
                        false => Access::Refused(words::access::look_submits(me)),
                        true => said(VaultCommand::Submit { text: text.clone(), from: Some(identity(me)) }),
                    })
                }
                VaultCommand::Raise { id, risk, irreversible, requires_human, reason, .. } => {
                    in_project(own, project, || {
                        said(VaultCommand::Raise {
                            id: id.clone(),
                            risk: *risk,
                            irreversible: *irreversible,
                            requires_human: *requires_human,
                            reason: reason.clone(),
                            by: identity(me),
                        })
                    })
                }
                VaultCommand::Approve { .. } | VaultCommand::Reject { .. } => for_people(),
            }
        }
        Request::Forge { project, command } => match session_at_the_forge(own, project, command) {
            Some(access) => in_project(own, project, || access),
            None => for_people(),
        },
        Request::Read { project, what, .. } => {
            let (is_own, said) = match what {
                Reading::Task { issue } | Reading::Explanation { issue } => {
                    (own.issue == Some(*issue), "the task")
                }
                Reading::CiLog { number, .. } => {
                    (own.issue == Some(*number) || own.pr == Some(*number), "the log")
                }
            };
            in_project(own, project, || match is_own {
                true => allowed(request.clone()),
                false => Access::Refused(words::access::not_its_own(me, said)),
            })
        }
        Request::Status
        | Request::Down
        | Request::Halt { .. }
        | Request::Resume
        | Request::Order { .. }
        | Request::Answer { .. }
        | Request::Inbox { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::Queue { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Handover { .. }
        | Request::Web { .. }
        | Request::Claim { .. } => for_people(),
    }
}

/// What a session may ask of the embedded forge; none for what is a person's.
fn session_at_the_forge(own: &OwnSession, project: &ProjectName, command: &ForgeCommand) -> Option<Access> {
    let me = &own.session;
    let with = |command: ForgeCommand| Box::new(Request::Forge { project: project.clone(), command });
    let as_it_is = || Access::Allowed(with(command.clone()));
    let refused = |why: String| Some(Access::Refused(why));
    match command {
        ForgeCommand::CreateIssue { title, body, labels, .. } => {
            if let Some(label) = labels.iter().find(|label| steers(label)) {
                return refused(words::access::steering_label(label));
            }
            let (title, body, labels) = (title.clone(), body.clone(), labels.clone());
            let filed = ForgeCommand::CreateIssue { title, body, labels, author: me.clone() };
            Some(Access::AllowedIf(with(filed), Condition::MayFile))
        }
        ForgeCommand::ListIssues { state } => match state {
            StateFilter::Open => Some(as_it_is()),
            StateFilter::Closed | StateFilter::All => refused(words::access::closed_issues(me)),
        },
        ForgeCommand::ShowIssue { number } if own.issue == Some(*number) => Some(as_it_is()),
        ForgeCommand::ShowIssue { number } => {
            Some(Access::AllowedIf(with(command.clone()), Condition::IssueIsOpen(*number)))
        }
        ForgeCommand::ShowPull { number } if own.pr == Some(*number) => Some(as_it_is()),
        ForgeCommand::ShowPull { .. } => refused(words::access::not_its_own(me, "what is said")),
        ForgeCommand::ListChecks { sha } if own.head.as_ref() == Some(sha) => Some(as_it_is()),
        ForgeCommand::ListChecks { .. } => refused(words::access::not_its_own(me, "the checks")),
        ForgeCommand::CreatePull { .. }
        | ForgeCommand::Comment { .. }
        | ForgeCommand::Label { .. }
        | ForgeCommand::SetIssueOpen { .. }
        | ForgeCommand::ListPulls { .. }
        | ForgeCommand::Review { .. }
        | ForgeCommand::ClosePull { .. }
        | ForgeCommand::MergePull { .. }
        | ForgeCommand::ListBoard
        | ForgeCommand::SetBoard { .. }
        | ForgeCommand::SetCheck { .. } => None,
    }
}

fn in_project(own: &OwnSession, project: &ProjectName, access: impl FnOnce() -> Access) -> Access {
    match own.project == *project {
        true => access(),
        false => Access::Refused(words::access::another_project(&own.session, project.as_str())),
    }
}

/// Whether a label makes the daemon or a role of its do something. A forge may take no notice of upper and lower case.
fn steers(label: &str) -> bool {
    labels::ALL.iter().any(|(known, ..)| label.trim().eq_ignore_ascii_case(known))
}

/// Whose session it is, the same across generations: what the vault calls a source.
fn identity(session: &str) -> String {
    session.rsplit_once('.').map_or(session, |(identity, _)| identity).to_owned()
}

/// A keeper or launcher: reports of its session.
fn reporter(who: &str, session: &str, request: &Request) -> Access {
    let about = |named: &str| match named == session {
        true => Access::Allowed(Box::new(request.clone())),
        false => Access::Refused(words::access::another_session(session, named)),
    };
    match request {
        Request::Hook { report } => about(&report.session),
        Request::Measure { session, .. } => about(session),
        Request::Status
        | Request::Down
        | Request::Halt { .. }
        | Request::Resume
        | Request::Order { .. }
        | Request::Answer { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Send { .. }
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::Queue { .. }
        | Request::Run { .. }
        | Request::Vault { .. }
        | Request::Inbox { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Health { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. }
        | Request::Forge { .. }
        | Request::Claim { .. }
        | Request::Handover { .. }
        | Request::Web { .. }
        | Request::Read { .. } => {
            Access::Refused(words::access::reports_only(who, session, &name_of(request)))
        }
    }
}

/// The scope that a token needs for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Read,
    Order,
    Approve,
    /// `approve`, and not by MCP.
    Decide,
    /// No token is enough.
    Presence,
}

/// A token, within its scopes and under its person's name.
fn token(name: &str, scopes: Scopes, channel: Channel, request: &Request) -> Access {
    let what = || name_of(request);
    let (has, scope) = match needs(request) {
        Needs::Read => (scopes.read, "read"),
        Needs::Order => (scopes.order, "order"),
        Needs::Approve => (scopes.approve, "approve"),
        Needs::Decide => match channel {
            Channel::Mcp => return Access::Refused(words::access::never_by_mcp(&what())),
            Channel::Web | Channel::Api => (scopes.approve, "approve"),
        },
        Needs::Presence => return Access::Refused(words::access::never_by_token(&what())),
    };
    match has {
        true => Access::Allowed(Box::new(in_the_name_of(name, request))),
        false => Access::Refused(words::access::scope_missing(name, scope, &what())),
    }
}

/// The scope of every request. Whatever lets code land is an approval; whatever runs a new program on the machine, ends
/// the daemon or speaks for a session needs more than a token.
pub fn needs(request: &Request) -> Needs {
    match request {
        Request::Status | Request::ForgeStats { .. } | Request::Read { .. } | Request::Mask { .. } => {
            Needs::Read
        }
        Request::Health { fix, .. } => match fix {
            Fix::No | Fix::Dry => Needs::Read,
            Fix::Do => Needs::Order,
        },
        Request::Order { .. }
        | Request::Halt { .. }
        | Request::Resume
        | Request::Answer { .. }
        | Request::Send { .. }
        | Request::ResumeRole { .. }
        | Request::LookNow { .. }
        | Request::TryNotifiers { .. } => Needs::Order,
        Request::Queue { command, .. } => match command {
            // A branch that is tested again may land.
            QueueCommand::Add { .. }
            | QueueCommand::Enter { .. }
            | QueueCommand::Retest { .. }
            | QueueCommand::Forget { .. } => Needs::Approve,
            // A pull request has a review before it.
            QueueCommand::Undo { .. }
            | QueueCommand::Remove { .. }
            | QueueCommand::Pause { .. }
            | QueueCommand::Resume
            | QueueCommand::Look => Needs::Order,
            // It reads a checkout on the daemon's machine, and lands what is there.
            QueueCommand::Sync { .. } | QueueCommand::Synced { .. } => Needs::Presence,
            // It reads a checkout on the daemon's machine and leaves one there.
            QueueCommand::Try { .. } => Needs::Presence,
        },
        Request::Run { command, .. } => match command {
            RunCommand::Start { .. } | RunCommand::Stop { .. } => Needs::Order,
            RunCommand::StepDone { .. } => Needs::Presence,
        },
        Request::Vault { command, .. } => match command {
            VaultCommand::Submit { .. } | VaultCommand::Raise { .. } => Needs::Order,
            VaultCommand::Approve { .. } | VaultCommand::Reject { .. } => Needs::Decide,
        },
        Request::Inbox { command, .. } => match command {
            InboxCommand::Answer { .. } | InboxCommand::Dismiss { .. } => Needs::Order,
            InboxCommand::Approve { .. } | InboxCommand::Reject { .. } => Needs::Decide,
        },
        Request::Forge { command, .. } => match command {
            ForgeCommand::ListIssues { .. }
            | ForgeCommand::ShowIssue { .. }
            | ForgeCommand::ListPulls { .. }
            | ForgeCommand::ShowPull { .. }
            | ForgeCommand::ListBoard
            | ForgeCommand::ListChecks { .. } => Needs::Read,
            ForgeCommand::CreateIssue { .. }
            | ForgeCommand::CreatePull { .. }
            | ForgeCommand::Comment { .. }
            | ForgeCommand::Label { .. }
            | ForgeCommand::SetIssueOpen { .. }
            | ForgeCommand::ClosePull { .. }
            | ForgeCommand::SetBoard { .. } => Needs::Order,
            ForgeCommand::Review { verdict, .. } => match verdict {
                ReviewVerdict::Approve => Needs::Approve,
                ReviewVerdict::RequestChanges | ReviewVerdict::Discuss => Needs::Order,
            },
            ForgeCommand::MergePull { .. } | ForgeCommand::SetCheck { .. } => Needs::Approve,
        },
        Request::Claim { order, .. } => match order {
            ClaimOrder::Look { .. } | ClaimOrder::Board => Needs::Read,
            ClaimOrder::Take { .. }
            | ClaimOrder::Sync { .. }
            | ClaimOrder::Finish { .. }
            | ClaimOrder::Release { .. } => Needs::Order,
            // It reads a checkout on the daemon's machine.
            ClaimOrder::HandIn { .. } | ClaimOrder::CheckPushed { .. } => Needs::Presence,
        },
        Request::Down
        | Request::ReloadProjects
        | Request::AddProject { .. }
        | Request::RemoveProject { .. }
        | Request::Acknowledge { .. }
        | Request::Checkpoint { .. }
        | Request::Measure { .. }
        // It is about a checkout on the daemon's machine.
        | Request::Handover { .. }
        // Whoever makes logins must be somebody here.
        | Request::Web { .. }
        | Request::Hook { .. } => Needs::Presence,
    }
}

#[cfg(test)]
mod tests;
