//! From a graph to a pipeline: every attribute read into its type, or told about.

use std::collections::BTreeSet;

use super::condition::Condition;
use super::diagnostic::{Problem, place};
use super::graph::{Attributes, Graph, GraphEdge, GraphNode, Value};
use super::model::{
    BranchFailure, Codergen, Edge, GateKind, Handler, Model, Node, Pipeline, Vocabulary, accelerator,
};
use super::run::NodeStatus;
use super::style_sheet::{self, StyleSheet};
use super::syntax::{Form, Span};
use super::vocabulary::{AttributeOwner, Meaning, Work, meaning, meant, nearest};
use crate::words::pipeline::Sentence;

/// How many bytes a prompt may have once `$goal` is filled in.
const MAX_PROMPT_BYTES: usize = 100_000;
/// How many bytes a label may grow to by the names that its escapes stand for.
const MAX_CAPTION_BYTES: usize = 10_000;

/// More tries than this are no plan.
const MAX_RETRIES: u32 = 100;

/// How many branches Attractor lets work at once when nothing else is said.
const ATTRACTOR_BRANCHES: u32 = 4;

/// Reads a graph. What cannot be read is told and replaced by a harmless value, so that one look finds every mistake.
pub(super) fn read(text: &str, graph: &Graph) -> (Pipeline, Vec<Problem>) {
    let vocabulary = vocabulary(graph);
    let mut reader = Reader { text, graph, vocabulary, sheet: StyleSheet::default(), problems: Vec::new() };
    reader.attributes_known();
    reader.sheet = reader.style_sheet();
    let pipeline = reader.pipeline();
    (pipeline, reader.problems)
}

/// A file speaks the harness's words if it uses any that only the harness has.
fn vocabulary(graph: &Graph) -> Vocabulary {
    let on_node = |node: &GraphNode| {
        ["handler", "bead_id", "worker_type", "gate"].iter().any(|key| node.attributes.contains_key(*key))
    };
    let on_graph = ["prd_ref", "promise_id"].iter().any(|key| graph.attributes.contains_key(*key));
    if on_graph || graph.nodes.iter().any(on_node) { Vocabulary::Harness } else { Vocabulary::Attractor }
}

struct Reader<'a> {
    text: &'a str,
    graph: &'a Graph,
    vocabulary: Vocabulary,
    sheet: StyleSheet,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn error(&mut self, span: Span, rule: &'static str, message: impl Into<String>) {
        self.problems.push(Problem::new(span, rule, message));
    }

    fn attributes_known(&mut self) {
        let graph = self.graph;
        self.known(&graph.attributes, AttributeOwner::Graph);
        graph.subgraphs.iter().for_each(|group| self.known(&group.attributes, AttributeOwner::Subgraph));
        graph.nodes.iter().for_each(|node| self.known(&node.attributes, AttributeOwner::Node));
        graph.edges.iter().for_each(|edge| self.known(&edge.attributes, AttributeOwner::Edge));
    }

    fn known(&mut self, attributes: &Attributes, on: AttributeOwner) {
        for (key, value) in attributes {
            let span = value.key_span;
            match meaning(key, on) {
                Meaning::Ours | Meaning::Drawing => {}
                Meaning::NotCarriedOut(instead) => self.problems.push(
                    Problem::new(
                        span,
                        "not_carried_out",
                        Sentence::NotCarriedOut(key.to_string()).to_string(),
                    )
                    .hint(instead),
                ),
                Meaning::Unknown => self.problems.push(match meant(key, on) {
                    Some(meant) => Problem::new(
                        span,
                        "unknown_attribute",
                        Sentence::UnknownAttribute(on.noun().to_string(), key.to_string()).to_string(),
                    )
                    .hint(Sentence::DidYouMean(meant.to_string())),
                    None => Problem::warning(
                        span,
                        "unknown_attribute",
                        Sentence::MeaninglessAttribute(key.to_string()).to_string(),
                    ),
                }),
            }
        }
    }

    fn style_sheet(&mut self) -> StyleSheet {
        let Some(value) = self.graph.attributes.get("model_stylesheet") else { return StyleSheet::default() };
        match StyleSheet::parse(&value.text) {
            Ok(sheet) => {
                for id in sheet.ids() {
                    if self.graph.node(id).is_none() {
                        let message = Sentence::StyleSheetNamesNobody(id.to_string());
                        self.problems.push(Problem::warning(value.span, "stylesheet", message));
                    }
                }
                sheet
            }
            Err(error) => {
                let span = self.inside(value, error.at);
                self.error(span, "stylesheet", error.message);
                StyleSheet::default()
            }
        }
    }

    /// A place inside a value. Where the file's text is not the value byte for byte, the value as a whole is meant.
    fn inside(&self, value: &Value, at: usize) -> Span {
        let start = value.span.start + usize::from(value.form == Form::Quoted) + at;
        let as_written = self.text.get(start..start + value.text.len().saturating_sub(at));
        if as_written == value.text.get(at..) { Span::new(start, value.span.end) } else { value.span }
    }

    fn pipeline(&mut self) -> Pipeline {
        let graph = self.graph;
        let text_of = |key: &str| graph.attributes.get(key).map(plain).filter(|text| !text.is_empty());
        let (goal, default_retries) = (text_of("goal"), self.retries(&graph.attributes, "default_max_retry"));
        self.fidelity(&graph.attributes, "default_fidelity");
        let nodes: Vec<Node> = (0..graph.nodes.len())
            .map(|index| self.node(index, goal.as_deref(), default_retries.unwrap_or(0)))
            .collect();
        let edges = graph.edges.iter().map(|edge| self.edge(edge)).collect();
        let with = |wanted: &Handler| {
            nodes.iter().find(|node| node.handler == *wanted).map(|node| node.id.clone()).unwrap_or_default()
        };
        Pipeline {
            name: graph.name.clone().unwrap_or_default(),
            label: graph.attributes.get("label").map(|label| caption(label, "", graph)),
            goal,
            vocabulary: self.vocabulary,
            prd_ref: text_of("prd_ref"),
            promise_id: text_of("promise_id"),
            retry_target: text_of("retry_target"),
            fallback_retry_target: text_of("fallback_retry_target"),
            start: with(&Handler::Start),
            exit: with(&Handler::Exit),
            nodes,
            edges,
        }
    }

    fn node(&mut self, index: usize, goal: Option<&str>, default_retries: u32) -> Node {
        let node = &self.graph.nodes[index];
        let text = |key: &str| node.attributes.get(key).map(plain).filter(|text| !text.is_empty());
        let label = match node.attributes.get("label") {
            Some(label) => caption(label, &node.id, self.graph),
            None => node.id.clone(),
        };
        let (line, column) = place(self.text, node.span.start);
        self.status(node);
        self.fidelity(&node.attributes, "fidelity");
        let work = self.work(node);
        let handler = self.handler(index, work, &label, goal);
        Node {
            id: node.id.clone(),
            label,
            handler,
            max_retries: self.retries(&node.attributes, "max_retries").unwrap_or(default_retries),
            goal_gate: self.flag(node, "goal_gate"),
            retry_target: text("retry_target"),
            fallback_retry_target: text("fallback_retry_target"),
            timeout_secs: self.timeout(node),
            allow_partial: self.flag(node, "allow_partial"),
            auto_status: self.flag(node, "auto_status"),
            thread_id: text("thread_id"),
            bead_id: text("bead_id"),
            line,
            column,
        }
    }

    /// The work a node is for: what it says outright, else its shape, else a task for an agent.
    fn work(&mut self, node: &GraphNode) -> Work {
        let said = ["handler", "type"].into_iter().find_map(|key| Some((key, node.attributes.get(key)?)));
        let shape = node.attributes.get("shape");
        if let Some((key, value)) = said {
            let Some(work) = Work::of(value.text.trim()) else {
                let problem = Problem::new(
                    value.span,
                    "unknown_handler",
                    Sentence::NoHandlerCalled(value.text.to_string()).to_string(),
                );
                let known = nearest(
                    value.text.trim(),
                    ["start", "exit", "codergen", "tool", "conditional", "parallel"].into_iter(),
                );
                let hint = known.map_or_else(
                    || format!("there are {}", Work::names()),
                    |known| Sentence::DidYouMean(known.to_string()).to_string(),
                );
                self.problems.push(problem.hint(hint));
                return Work::Codergen;
            };
            // A box is what everything is drawn as unless somebody says otherwise.
            let contradicts = shape.filter(|shape| {
                let default = shape.text == "box" && (!shape.own || key == "type");
                !default && !work.fits(&shape.text, self.vocabulary)
            });
            if let Some(shape) = contradicts {
                let message = Sentence::ShapeDoesNotStandFor(shape.text.to_string(), work.name().to_string());
                self.problems
                    .push(Problem::new(shape.span, "shape", message).hint(Sentence::ChangeShapeOrHandler));
            }
            return work;
        }
        match shape {
            Some(shape) => Work::of_shape(&shape.text, self.vocabulary).unwrap_or_else(|| {
                let message = Sentence::ShapeStandsForNoWork(shape.text.to_string());
                self.problems
                    .push(Problem::new(shape.span, "shape", message).hint(Sentence::AddTypeOrHandler));
                Work::Codergen
            }),
            None => self.work_by_name(&node.id),
        }
    }

    /// Attractor also takes a node called `start`, `exit` or `end` for what its name says, if nothing else is.
    fn work_by_name(&self, id: &str) -> Work {
        let drawn = |shape: &str| {
            self.graph.nodes.iter().any(|n| n.attributes.get("shape").is_some_and(|s| s.text == shape))
        };
        match id.to_ascii_lowercase().as_str() {
            "start" if !drawn("Mdiamond") => Work::Start,
            "exit" | "end" if !drawn("Msquare") => Work::Exit,
            _ => Work::Codergen,
        }
    }

    fn handler(&mut self, index: usize, work: Work, label: &str, goal: Option<&str>) -> Handler {
        let node = &self.graph.nodes[index];
        match work {
            Work::Start => Handler::Start,
            Work::Exit => Handler::Exit,
            Work::Conditional => Handler::Conditional,
            Work::FanIn => Handler::FanIn,
            Work::Codergen => Handler::Codergen(Box::new(self.codergen(index, label, goal))),
            Work::Tool => {
                let command =
                    ["tool_command", "command"].iter().find_map(|key| node.attributes.get(*key)).map(plain);
                if command.as_deref().unwrap_or_default().trim().is_empty() {
                    let message = Sentence::ToolNodeHasNoCommand(node.id.to_string());
                    self.problems.push(
                        Problem::new(node.span, "command", message).hint(Sentence::AddCommandOrToolCommand),
                    );
                }
                Handler::Tool { command: command.unwrap_or_default() }
            }
            Work::Human => self.human(index),
            Work::Parallel => self.parallel(node),
            Work::Child => self.child(node),
        }
    }

    fn codergen(&mut self, index: usize, label: &str, goal: Option<&str>) -> Codergen {
        let node = &self.graph.nodes[index];
        let text = |key: &str| node.attributes.get(key).map(plain).filter(|text| !text.trim().is_empty());
        if text("prompt").is_none() && !node.attributes.contains_key("label") && node.declared {
            let message = Sentence::NeitherPromptNorLabel(node.id.to_string());
            self.problems.push(Problem::warning(node.span, "prompt", message));
        }
        let effort = node.attributes.get("reasoning_effort").and_then(|value| {
            style_sheet::effort(value.text.trim())
                .map_err(|message| self.error(value.span, "value", message))
                .ok()
        });
        let prompt = text("prompt").unwrap_or_else(|| label.to_owned());
        let goal = goal.unwrap_or_default();
        let filled_in = prompt.len() + prompt.matches("$goal").count().saturating_mul(goal.len());
        let prompt = if filled_in <= MAX_PROMPT_BYTES.max(prompt.len()) {
            prompt.replace("$goal", goal)
        } else {
            let message = Sentence::PromptTooLong(node.id.clone(), MAX_PROMPT_BYTES.to_string());
            self.error(node.span, "size", message.to_string());
            prompt
        };
        let own = Model { name: text("llm_model"), provider: text("llm_provider"), effort };
        Codergen {
            prompt,
            acceptance: text("acceptance"),
            files: text("files").map(|files| list(&files)).unwrap_or_default(),
            worker_type: text("worker_type"),
            promise_ac: text("promise_ac"),
            prd_ref: text("prd_ref"),
            issue: self.issue(node),
            model: self.sheet.model(&node.id, &self.classes(index), own),
        }
    }

    fn issue(&mut self, node: &GraphNode) -> Option<u64> {
        let number = |text: &str| text.trim().trim_start_matches('#').parse::<u64>().ok().filter(|n| *n > 0);
        if let Some(value) = node.attributes.get("issue").filter(|value| !value.text.trim().is_empty()) {
            let issue = number(&value.text);
            if issue.is_none() {
                self.error(value.span, "value", Sentence::NoIssueNumber(value.text.to_string()).to_string());
            }
            return issue;
        }
        // A tracker's id such as `TASK-10` is kept as it is; a plain number is one of the forge's issues.
        node.attributes.get("bead_id").and_then(|value| number(&value.text))
    }

    /// Classes for the style sheet: the node's own, and one for the label of each subgraph around it.
    fn classes(&self, index: usize) -> Vec<String> {
        let own = self.graph.nodes[index]
            .attributes
            .get("class")
            .map(|class| list(&class.text))
            .unwrap_or_default();
        let around = self.graph.subgraphs.iter().filter(|group| group.nodes.contains(&index));
        let derived = around.filter_map(|group| group.attributes.get("label")).map(|label| {
            let dashed = label.text.trim().to_lowercase().replace(' ', "-");
            dashed.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
        });
        own.into_iter().chain(derived.filter(|class| !class.is_empty())).collect()
    }

    fn human(&mut self, index: usize) -> Handler {
        let node = &self.graph.nodes[index];
        let default_choice = node.attributes.get("human.default_choice").map(plain);
        let free: Vec<&GraphEdge> = self
            .graph
            .edges
            .iter()
            .filter(|edge| edge.tail == index)
            .filter(|edge| edge.attributes.get("condition").is_none_or(|c| c.text.trim().is_empty()))
            .collect();
        let labelled = free.iter().all(|edge| edge.attributes.contains_key("label"));
        let choices = free.len() > 1 && (labelled || self.vocabulary == Vocabulary::Attractor);
        let kind = node.attributes.get("gate").map(|value| {
            let kind = GateKind::ALL.into_iter().find(|kind| kind.as_str() == value.text.trim());
            kind.unwrap_or_else(|| {
                let message = Sentence::UnknownGate(value.text.to_string());
                self.error(value.span, "gate", message);
                GateKind::Manual
            })
        });
        if choices {
            self.choices(&free, default_choice.as_deref());
        }
        match kind {
            None | Some(GateKind::Manual) if choices => Handler::Human { default_choice },
            None if self.vocabulary == Vocabulary::Attractor => Handler::Human { default_choice },
            kind => {
                let instructions =
                    ["prompt", "acceptance"].iter().find_map(|key| node.attributes.get(*key)).map(plain);
                Handler::Gate { kind: kind.unwrap_or(GateKind::Manual), instructions }
            }
        }
    }

    /// Two choices must not look the same, and the default must be one of them.
    fn choices(&mut self, edges: &[&GraphEdge], default: Option<&str>) {
        let (mut labels, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for edge in edges {
            let target = &self.graph.nodes[edge.head].id;
            let label = edge.attributes.get("label").map_or_else(|| target.clone(), plain);
            let span = edge.attributes.get("label").map_or(edge.span, |label| label.span);
            if !labels.insert(super::model::normalized(&label)) {
                self.error(span, "choice", Sentence::TwoChoicesAreCalled(label.to_string()).to_string());
            } else if accelerator(&label).is_some_and(|key| !keys.insert(key)) {
                let message = Sentence::ChoiceKeyUsedTwice(label.to_string());
                self.problems.push(Problem::warning(span, "choice", message).hint(Sentence::WriteChoiceKey));
            }
        }
        let known = |choice: &str| edges.iter().any(|edge| self.graph.nodes[edge.head].id == choice);
        if let Some(choice) = default.filter(|choice| !known(choice)) {
            let tail = edges.first().map_or(0, |edge| edge.tail);
            let span = self.graph.nodes[tail]
                .attributes
                .get("human.default_choice")
                .map_or(Span::default(), |v| v.span);
            self.error(span, "choice", Sentence::NoSuchDefaultChoice(choice.to_string()).to_string());
        }
    }

    fn parallel(&mut self, node: &GraphNode) -> Handler {
        if let Some(value) = node.attributes.get("join_policy").filter(|value| value.text != "wait_all") {
            let message = Sentence::JoinPolicyNotCarriedOut(value.text.to_string());
            self.problems.push(Problem::new(value.span, "not_carried_out", message).hint("use `wait_all`"));
        }
        let on_failure =
            match node.attributes.get("error_policy").map(|value| (value.text.as_str(), value.span)) {
                Some(("continue", _)) => BranchFailure::Continue,
                Some(("fail_fast", _)) => BranchFailure::EndRun,
                Some((other, span)) => {
                    let message = Sentence::ErrorPolicyNotCarriedOut(other.to_string());
                    self.problems.push(
                        Problem::new(span, "not_carried_out", message).hint(Sentence::UseContinueOrFailFast),
                    );
                    BranchFailure::EndRun
                }
                None if self.vocabulary == Vocabulary::Attractor => BranchFailure::Continue,
                None => BranchFailure::EndRun,
            };
        let default = (self.vocabulary == Vocabulary::Attractor).then_some(ATTRACTOR_BRANCHES);
        let max_active = match node.attributes.get("max_parallel") {
            Some(value) => match value.text.trim().parse::<u32>() {
                Ok(number) if number > 0 => Some(number),
                Ok(_) | Err(_) => {
                    self.error(
                        value.span,
                        "value",
                        Sentence::NoNumberBranches(value.text.to_string()).to_string(),
                    );
                    default
                }
            },
            None => default,
        };
        Handler::Parallel { max_active, on_failure }
    }

    fn child(&mut self, node: &GraphNode) -> Handler {
        let own =
            node.attributes.get("stack.child_dotfile").or(self.graph.attributes.get("stack.child_dotfile"));
        if let Some(value) = node.attributes.get("stack.child_autostart").filter(|value| value.text != "true")
        {
            self.error(value.span, "not_carried_out", Sentence::ChildAlwaysStarts.to_string());
        }
        let Some(value) = own else {
            let problem = Problem::new(
                node.span,
                "child",
                Sentence::NamesNoChildPipeline(node.id.to_string()).to_string(),
            );
            self.problems.push(problem.hint("add \"stack.child_dotfile\"=\"file.dot\""));
            return Handler::Child { file: String::new() };
        };
        let file = plain(value);
        let inside = !file.is_empty() && !file.starts_with('/') && file.split('/').all(|part| part != "..");
        if !inside || file.contains('\\') {
            self.error(value.span, "child", Sentence::ChildOutsideDirectory.to_string());
        }
        Handler::Child { file }
    }

    fn edge(&mut self, edge: &GraphEdge) -> Edge {
        let [from, to] = [edge.tail, edge.head].map(|end| self.graph.nodes[end].id.clone());
        self.fidelity(&edge.attributes, "fidelity");
        let condition = edge.attributes.get("condition").and_then(|value| {
            Condition::parse(&value.text).unwrap_or_else(|error| {
                let span = self.inside(value, error.at);
                self.error(span, "condition", error.message);
                None
            })
        });
        let weight = edge.attributes.get("weight").map_or(0, |value| {
            value.text.trim().parse::<i64>().unwrap_or_else(|_| {
                self.error(
                    value.span,
                    "value",
                    Sentence::WeightNoWholeNumber(value.text.to_string()).to_string(),
                );
                0
            })
        });
        let label = edge.attributes.get("label").map(|label| caption(label, "", self.graph));
        let thread_id = edge.attributes.get("thread_id").map(plain).filter(|text| !text.is_empty());
        Edge { from, to, label: label.filter(|label| !label.trim().is_empty()), condition, weight, thread_id }
    }

    fn status(&mut self, node: &GraphNode) {
        let Some(value) = node.attributes.get("status").filter(|value| !value.text.is_empty()) else {
            return;
        };
        if !NodeStatus::ALL.iter().any(|status| status.as_str() == value.text) {
            let known: Vec<&str> = NodeStatus::ALL.iter().map(|status| status.as_str()).collect();
            let message = Sentence::UnknownStatus(value.text.to_string(), known.join(", ").to_string());
            self.error(value.span, "status", message);
        }
    }

    /// Only one way of carrying a conversation on is built: the thread, which is `full`.
    fn fidelity(&mut self, attributes: &Attributes, key: &str) {
        let Some(value) = attributes.get(key).filter(|value| !value.text.is_empty() && value.text != "full")
        else {
            return;
        };
        let message = Sentence::FidelityNotCarriedOut(value.text.to_string());
        let hint = Sentence::UseThreadId.to_string();
        self.problems.push(Problem::new(value.span, "not_carried_out", message).hint(hint));
    }

    fn flag(&mut self, node: &GraphNode, key: &str) -> bool {
        let Some(value) = node.attributes.get(key) else { return false };
        match value.text.trim().to_ascii_lowercase().as_str() {
            "true" => true,
            "false" | "" => false,
            other => {
                self.error(
                    value.span,
                    "value",
                    Sentence::NotTrueOrFalse(key.to_string(), other.to_string()).to_string(),
                );
                false
            }
        }
    }

    fn retries(&mut self, attributes: &Attributes, key: &str) -> Option<u32> {
        let value = attributes.get(key).filter(|value| !value.text.is_empty())?;
        match value.text.trim().parse::<u32>() {
            Ok(number) if number <= MAX_RETRIES => Some(number),
            Ok(_) | Err(_) => {
                self.error(
                    value.span,
                    "value",
                    Sentence::NumberOutOfRange(key.to_string(), MAX_RETRIES.to_string()).to_string(),
                );
                None
            }
        }
    }

    fn timeout(&mut self, node: &GraphNode) -> Option<u64> {
        let value = node.attributes.get("timeout").filter(|value| !value.text.is_empty())?;
        let seconds = seconds(value.text.trim());
        if seconds.is_none() {
            let message = Sentence::NoTimeout(value.text.to_string());
            self.error(value.span, "value", message);
        }
        seconds
    }
}

/// A span of time in whole seconds, rounded up, of at least one.
fn seconds(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..split].parse::<u64>().ok().filter(|n| *n > 0)?;
    Some(match text[split..].trim() {
        "ms" => number.div_ceil(1000),
        "" | "s" => number,
        "m" => number.checked_mul(60)?,
        "h" => number.checked_mul(3600)?,
        "d" => number.checked_mul(86_400)?,
        _ => return None,
    })
}

fn list(text: &str) -> Vec<String> {
    text.split([',', ' ', '\n']).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A value as text: `\n`, `\t` and `\\` mean what they mean in every string.
fn plain(value: &Value) -> String {
    unescape(&stripped(value), |c| match c {
        'n' => Some("\n".to_owned()),
        't' => Some("\t".to_owned()),
        '\\' => Some("\\".to_owned()),
        _ => None,
    })
}

/// A label as Graphviz shows it: line breaks in three spellings, `\N` for the node and `\G` for the graph.
fn caption(value: &Value, id: &str, graph: &Graph) -> String {
    let text = unescape(&stripped(value), |c| match c {
        'n' | 'l' | 'r' => Some("\n".to_owned()),
        'N' => Some(id.to_owned()),
        'G' => Some(graph.name.clone().unwrap_or_default()),
        other => Some(other.to_string()),
    });
    text.trim_end_matches('\n').to_owned()
}

/// A text without its escapes. One that grows past the limit by what its escapes stand for is cut there.
fn unescape(text: &str, meaning: impl Fn(char) -> Option<String>) -> String {
    let mut plain = String::with_capacity(text.len());
    let longest = text.len().max(MAX_CAPTION_BYTES);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if plain.len() > longest {
            break;
        }
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some(next) => match meaning(next) {
                Some(meant) => plain.push_str(&meant),
                None => plain.extend(['\\', next]),
            },
            None => plain.push('\\'),
        }
    }
    plain
}

/// The text of a value; of an HTML one, what is left without its tags.
fn stripped(value: &Value) -> String {
    if value.form != Form::Html {
        return value.text.clone();
    }
    let (mut text, mut tag) = (String::new(), None::<String>);
    for c in value.text.chars() {
        match (c, &mut tag) {
            ('<', _) => tag = Some(String::new()),
            ('>', Some(name)) => {
                if name.trim_matches(['/', ' ']).eq_ignore_ascii_case("br") {
                    text.push('\n');
                }
                tag = None;
            }
            (c, Some(name)) => name.push(c),
            (c, None) => text.push(c),
        }
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .into_iter()
        .fold(text, |text, (entity, meant)| text.replace(entity, meant))
}
