//! Names of workflows.

use std::fmt;

use crate::concern::{About, ConcernKey};
use crate::ids::{ActionKey, Number, ProjectName, RoleKey, RunKey, TaskKey};
use crate::notifier::NotifierKey;
use crate::role::Role;
use crate::run::RunId;
use crate::task::Task;

/// The name of a workflow: which kind it is, and which one of its project.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkflowId {
    Task(TaskKey),
    Run(RunKey),
    Vault(ActionKey),
    Concern(ConcernKey),
    Role(RoleKey),
    /// A notifier, by one of its lanes.
    Notifier(NotifierKey),
}

impl WorkflowId {
    /// The project that it belongs to.
    pub fn project(&self) -> &ProjectName {
        match self {
            Self::Task(key) => &key.project,
            Self::Run(key) => &key.project,
            Self::Vault(key) => &key.project,
            Self::Concern(key) => &key.project,
            Self::Role(key) => &key.project,
            Self::Notifier(key) => &key.project,
        }
    }

    /// The task, if it is one.
    pub fn task(&self) -> Option<&TaskKey> {
        match self {
            Self::Task(key) => Some(key),
            Self::Run(_) | Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => None,
        }
    }

    /// The run, if it is one.
    pub fn run(&self) -> Option<&RunKey> {
        match self {
            Self::Run(key) => Some(key),
            Self::Task(_) | Self::Vault(_) | Self::Concern(_) | Self::Role(_) | Self::Notifier(_) => None,
        }
    }

    /// The issue that it is the work on.
    pub fn issue(&self) -> Option<Number> {
        self.task().map(|key| key.issue)
    }

    /// The identity of its sessions, the same across generations: `dev-shop-3`, `planner-shop-7`. Those without
    /// sessions have none, and their names are no identities.
    pub fn identity(&self) -> String {
        match self {
            Self::Task(key) => key.identity(),
            Self::Run(key) => key.identity(),
            Self::Vault(key) => key.to_string(),
            Self::Concern(key) => key.to_string(),
            Self::Role(key) => key.to_string(),
            Self::Notifier(key) => key.to_string(),
        }
    }

    /// The session of one generation: `dev-shop-3.1`.
    pub fn session(&self, generation: u32) -> String {
        format!("{}.{generation}", self.identity())
    }

    /// Reads the name of a session back: the workflow that it belongs to, and its generation.
    pub fn parse_session(session: &str) -> Option<(Self, u32)> {
        let (identity, generation) = session.rsplit_once('.')?;
        Some((Self::parse_identity(identity)?, generation.parse().ok()?))
    }

    /// Reads an identity back.
    pub fn parse_identity(identity: &str) -> Option<Self> {
        let role = Role::of_session(identity).ok()?;
        let (project, number) = identity.strip_prefix(role.as_str())?.strip_prefix('-')?.rsplit_once('-')?;
        let (project, number) = (ProjectName::new(project)?, number.parse().ok()?);
        Some(match role == Task::ROLE {
            true => Self::Task(TaskKey { project, issue: number }),
            false => Self::Run(RunKey { project, role, id: RunId(number) }),
        })
    }

    /// The word by which the store tells the workflows of a project apart: `task/3`, `run/planner/7`,
    /// `vault/deploy-1`, `concern/trust`, `role/gardener`, `notifier/matrix/prompt`.
    pub fn lane(&self) -> String {
        match self {
            Self::Task(key) => format!("task/{}", key.issue),
            Self::Run(key) => format!("run/{}/{}", key.role, key.id),
            Self::Vault(key) => format!("vault/{}", key.id),
            Self::Concern(key) => format!("concern/{}", key.about),
            Self::Role(key) => format!("role/{}", key.role),
            Self::Notifier(key) => format!("notifier/{}", key.lane()),
        }
    }

    /// Reads a [`lane`](Self::lane) of a project back.
    pub fn parse_lane(project: &ProjectName, lane: &str) -> Option<Self> {
        let project = project.clone();
        let (kind, rest) = lane.split_once('/')?;
        match kind {
            "task" => Some(Self::Task(TaskKey { project, issue: rest.parse().ok()? })),
            "run" => {
                let (role, id) = rest.split_once('/')?;
                Some(Self::Run(RunKey { project, role: role.parse().ok()?, id: RunId(id.parse().ok()?) }))
            }
            "vault" => Some(Self::Vault(ActionKey { project, id: rest.to_owned().try_into().ok()? })),
            "role" => Some(Self::Role(RoleKey { project, role: rest.parse().ok()? })),
            "notifier" => NotifierKey::parse_lane(&project, rest).map(Self::Notifier),
            "concern" => Some(Self::Concern(ConcernKey { project, about: About::new(rest)? })),
            _ => None,
        }
    }
}

impl From<TaskKey> for WorkflowId {
    fn from(key: TaskKey) -> Self {
        Self::Task(key)
    }
}

impl From<RunKey> for WorkflowId {
    fn from(key: RunKey) -> Self {
        Self::Run(key)
    }
}

impl From<ActionKey> for WorkflowId {
    fn from(key: ActionKey) -> Self {
        Self::Vault(key)
    }
}

impl From<ConcernKey> for WorkflowId {
    fn from(key: ConcernKey) -> Self {
        Self::Concern(key)
    }
}

impl From<RoleKey> for WorkflowId {
    fn from(key: RoleKey) -> Self {
        Self::Role(key)
    }
}

impl From<NotifierKey> for WorkflowId {
    fn from(key: NotifierKey) -> Self {
        Self::Notifier(key)
    }
}

impl fmt::Display for WorkflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(key) => key.fmt(f),
            Self::Run(key) => key.fmt(f),
            Self::Vault(key) => key.fmt(f),
            Self::Concern(key) => key.fmt(f),
            Self::Role(key) => key.fmt(f),
            Self::Notifier(key) => key.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WorkflowId;
    use crate::concern::{About, ConcernKey};
    use crate::config::NotifierKind;
    use crate::ids::{ActionKey, ProjectName, RoleKey, RunKey, TaskKey};
    use crate::notifier::{Lane, NotifierKey};
    use crate::role::Role;
    use crate::run::RunId;

    #[test]
    fn a_workflow_reads_back_from_the_names_of_its_sessions_and_from_its_lane() {
        let project = ProjectName::new("a-1-b2").unwrap();
        let mut all = vec![WorkflowId::Task(TaskKey { project: project.clone(), issue: 7 })];
        all.extend(
            Role::ALL
                .into_iter()
                .filter(|role| *role != Role::Dev)
                .map(|role| WorkflowId::Run(RunKey { project: project.clone(), role, id: RunId(12) })),
        );
        for id in all {
            assert_eq!(WorkflowId::parse_session(&id.session(3)), Some((id.clone(), 3)));
            assert_eq!(WorkflowId::parse_lane(&project, &id.lane()), Some(id.clone()));
            assert_eq!(id.project(), &project);
        }
        let action = ActionKey { project: project.clone(), id: "deploy-1.x".to_owned().try_into().unwrap() };
        let action = WorkflowId::Vault(action);
        assert_eq!(WorkflowId::parse_lane(&project, &action.lane()), Some(action.clone()));
        assert_eq!(WorkflowId::parse_identity(&action.identity()), None, "it has no sessions");
        let about = About::new("secret/3f.a").unwrap();
        let concern = WorkflowId::Concern(ConcernKey { project: project.clone(), about });
        assert_eq!(WorkflowId::parse_lane(&project, &concern.lane()), Some(concern.clone()));
        assert_eq!(WorkflowId::parse_identity(&concern.identity()), None, "it has no sessions");
        let memory = WorkflowId::Role(RoleKey { project: project.clone(), role: Role::Gardener });
        assert_eq!(WorkflowId::parse_lane(&project, &memory.lane()), Some(memory.clone()));
        assert_eq!(WorkflowId::parse_identity(&memory.identity()), None, "it has no sessions");
        for lane in Lane::ALL {
            let key = NotifierKey { project: project.clone(), kind: NotifierKind::Matrix, lane };
            let notifier = WorkflowId::from(key);
            assert_eq!(WorkflowId::parse_lane(&project, &notifier.lane()), Some(notifier.clone()));
            assert_eq!(WorkflowId::parse_identity(&notifier.identity()), None, "it has no sessions");
        }
        for bad in ["", "dev", "dev-shop", "dev-shop-x.1", "dev-shop-3", "cook-shop-3.1", "dev-$(id)-3.1"] {
            assert_eq!(WorkflowId::parse_session(bad), None, "{bad}");
        }
        for bad in [
            "",
            "task",
            "task/x",
            "run/7",
            "run/cook/7",
            "vault/",
            "vault/A",
            "concern/",
            "concern/A",
            "role/x",
            "notifier/matrix",
            "notifier/post/prompt",
        ] {
            assert_eq!(WorkflowId::parse_lane(&project, bad), None, "{bad}");
        }
    }
}
