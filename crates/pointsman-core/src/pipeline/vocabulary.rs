//! The words of both vocabularies: which attributes mean something, which shapes stand for which work.

use super::model::Vocabulary;
use crate::words::pipeline::Sentence;

/// The use of an attribute to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Ours,
    /// It only changes how Graphviz draws.
    Drawing,
    /// It asks for something that we do not do; the text says what to do instead.
    NotCarriedOut(Sentence),
    Unknown,
}

/// Kinds of work, without what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Start,
    Exit,
    Codergen,
    Tool,
    Human,
    Conditional,
    Parallel,
    FanIn,
    Child,
}

const WORK_NAMES: [(&str, Work); 9] = [
    ("start", Work::Start),
    ("exit", Work::Exit),
    ("codergen", Work::Codergen),
    ("tool", Work::Tool),
    ("wait.human", Work::Human),
    ("conditional", Work::Conditional),
    ("parallel", Work::Parallel),
    ("parallel.fan_in", Work::FanIn),
    ("stack.manager_loop", Work::Child),
];

impl Work {
    pub(super) fn of(name: &str) -> Option<Self> {
        WORK_NAMES.iter().find(|(known, _)| *known == name).map(|(_, work)| *work)
    }

    pub(super) fn name(self) -> &'static str {
        WORK_NAMES.iter().find(|(_, work)| *work == self).map_or("", |(name, _)| *name)
    }

    /// All names, for a message.
    pub(super) fn names() -> String {
        WORK_NAMES.map(|(name, _)| name).join(", ")
    }

    /// The work that a shape stands for, where it stands for one.
    pub(super) fn of_shape(shape: &str, vocabulary: Vocabulary) -> Option<Self> {
        Some(match (shape, vocabulary) {
            ("Mdiamond", _) => Self::Start,
            ("Msquare", _) => Self::Exit,
            ("box" | "rect" | "rectangle" | "square", _) => Self::Codergen,
            ("hexagon", _) => Self::Human,
            ("diamond", _) => Self::Conditional,
            ("parallelogram", Vocabulary::Harness) => Self::Parallel,
            ("parallelogram", Vocabulary::Attractor) => Self::Tool,
            // The harness gives these no meaning. A file that has them means what Attractor means.
            ("component", _) => Self::Parallel,
            ("tripleoctagon", _) => Self::FanIn,
            ("house", _) => Self::Child,
            _ => return None,
        })
    }

    /// Whether a node of this shape may be said to do this work. Only shapes that the file's own vocabulary gives a
    /// meaning can contradict, and a meaning that either vocabulary gives is no contradiction.
    pub(super) fn fits(self, shape: &str, vocabulary: Vocabulary) -> bool {
        let silent =
            vocabulary == Vocabulary::Harness && matches!(shape, "component" | "tripleoctagon" | "house");
        let said = [Vocabulary::Attractor, Vocabulary::Harness].map(|v| Self::of_shape(shape, v));
        silent
            || said == [None, None]
            || said.contains(&Some(self))
            || (self == Self::Tool && said.contains(&Some(Self::Codergen)))
            || (self == Self::FanIn && said.contains(&Some(Self::Parallel)))
    }
}

const GRAPH_OURS: [&str; 10] = [
    "goal",
    "label",
    "default_max_retry",
    "retry_target",
    "fallback_retry_target",
    "model_stylesheet",
    "prd_ref",
    "promise_id",
    "stack.child_dotfile",
    "default_fidelity",
];

const NODE_OURS: [&str; 38] = [
    "label",
    "shape",
    "type",
    "handler",
    "prompt",
    "max_retries",
    "goal_gate",
    "retry_target",
    "fallback_retry_target",
    "timeout",
    "llm_model",
    "llm_provider",
    "reasoning_effort",
    "class",
    "allow_partial",
    "auto_status",
    "thread_id",
    "fidelity",
    "tool_command",
    "command",
    "human.default_choice",
    "gate",
    "mode",
    "max_parallel",
    "join_policy",
    "error_policy",
    "stack.child_dotfile",
    "stack.child_autostart",
    "bead_id",
    "worker_type",
    "acceptance",
    "promise_ac",
    "promise_id",
    "prd_ref",
    "files",
    "status",
    "session",
    "issue",
];

const EDGE_OURS: [&str; 5] = ["label", "condition", "weight", "thread_id", "fidelity"];

const NOT_CARRIED_OUT: [(&str, Sentence); 11] = [
    ("loop_restart", Sentence::SendEdgeToLoop),
    ("tool_hooks.pre", Sentence::UseAgentHooks),
    ("tool_hooks.post", Sentence::UseAgentHooks),
    ("manager.poll_interval", Sentence::ChildReportsByItself),
    ("manager.max_cycles", Sentence::LimitChildByTimeout),
    ("manager.stop_condition", Sentence::PutConditionIntoChildPipeline),
    ("manager.actions", Sentence::ChildRunsToItsEnd),
    ("manager.steer_cooldown", Sentence::ChildRunsToItsEnd),
    ("expression", Sentence::WriteConditionOnEdges),
    ("join_k", Sentence::BranchesAreAlwaysWaitedFor),
    ("join_quorum", Sentence::BranchesAreAlwaysWaitedFor),
];

/// Graphviz's own attributes, one to a line. They draw and mean nothing to a run.
const DRAWING: &str = include_str!("graphviz_attributes.txt");

/// Which kind of thing an attribute stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeOwner {
    Graph,
    Subgraph,
    Node,
    Edge,
}

impl AttributeOwner {
    fn ours(self) -> &'static [&'static str] {
        match self {
            Self::Graph => &GRAPH_OURS,
            Self::Subgraph => &["label"],
            Self::Node => &NODE_OURS,
            Self::Edge => &EDGE_OURS,
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Subgraph => "subgraph",
            Self::Node => "node",
            Self::Edge => "edge",
        }
    }
}

/// What an attribute means there.
pub(super) fn meaning(key: &str, on: AttributeOwner) -> Meaning {
    if on.ours().contains(&key) {
        return Meaning::Ours;
    }
    if let Some((_, instead)) = NOT_CARRIED_OUT.iter().find(|(name, _)| *name == key) {
        return Meaning::NotCarriedOut(instead.clone());
    }
    if DRAWING.lines().any(|name| name == key) { Meaning::Drawing } else { Meaning::Unknown }
}

/// The attribute of ours that was probably meant.
pub(super) fn meant(key: &str, on: AttributeOwner) -> Option<&'static str> {
    nearest(key, on.ours().iter().copied())
}

/// The longest word that a slip of the fingers is looked for in, in bytes: comparing takes the product of two lengths.
const LONGEST_COMPARED: usize = 64;

/// The closest of several words, if it is close enough to be a slip of the fingers.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let allowed = match word.chars().count() {
        0..=3 => 0,
        4..=6 => 1,
        7..=8 => 2,
        _ => 3,
    };
    known
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 2 * allowed)
        .map(|candidate| (distance(word, candidate, allowed), candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must change, where two swapped neighbours count as one. What is more than the limit is not counted
/// out.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut last_but_one: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            if i.abs_diff(j) > limit {
                row.push(limit + 1);
                continue;
            }
            let mut best =
                (last[j - 1] + usize::from(a[i - 1] != b[j - 1])).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(last_but_one[j - 2] + 1);
            }
            row.push(best);
        }
        if row.iter().all(|changes| *changes > limit) {
            return limit + 1;
        }
        last_but_one = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_in_short_words_only() {
        let known = ["prompt", "timeout", "max_retries"];
        for (word, meant) in [
            ("promt", Some("prompt")),
            ("porompt", Some("prompt")),
            ("tiemout", Some("timeout")),
            ("max_retires", Some("max_retries")),
            ("max_rtris", Some("max_retries")),
            ("label", None),
            ("prompt", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
        // Comparing these would take as many steps as the product of their lengths.
        let (long, longer) = ("a".repeat(200_000), "a".repeat(200_001));
        assert_eq!(nearest(&long, std::iter::once(longer.as_str())), None);
    }
}
