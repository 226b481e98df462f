//! Agents are the programs that sessions run. Every difference between them is written here.
//!
//! The configuration names the agent that a command starts (`agent.kind`). If it does not, [`Agent::of_command`]
//! guesses once, when the file is read. Call sites ask for a capability and never look at the command. The files and
//! flags of Claude Code are in [`crate::claude`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::claude::launch;

/// A kind of agent program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    Claude,
    /// Codex CLI. It is run like any program so far, and so are Gemini CLI and opencode: they have names of their own so
    /// that a configuration that names them stays valid.
    Codex,
    Gemini,
    Opencode,
    /// Any program that works in a terminal.
    Program,
}

/// A word that names no kind of agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of agent {0:?}: it is one of {list}", list = Agent::ALL.map(Agent::as_str).join(", "))]
pub struct UnknownAgent(pub String);

/// The abilities of a kind of agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it reports what it does through hooks: its screen is then not read for that, and silence is a finding.
    pub hooks: bool,
    /// Whether it is started in a terminal with its first prompt as the last word. Any other agent has it typed.
    pub prompt_argument: bool,
    /// Whether it takes messages beside its terminal (a hook that waits, a socket), so that nothing is typed into a dialog.
    pub message_doors: bool,
    /// Whether it keeps a record of its conversation that shows which messages have arrived.
    pub record: bool,
    /// The flag that names the model.
    pub model_flag: Option<&'static str>,
    /// How its screen speaks of a context that is nearly full.
    pub screen: Screen,
}

/// The way in which a screen tells that the context is nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// By words of its own around the text; the text itself may speak of contexts as well.
    Claude,
    /// By a line that says so.
    Plain,
}

/// An agent without any integration: it has a terminal, and that is all we know.
const BARE: Capabilities = Capabilities {
    hooks: false,
    prompt_argument: false,
    message_doors: false,
    record: false,
    model_flag: None,
    screen: Screen::Plain,
};

impl Agent {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Program];

    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Program => "program",
        }
    }

    /// A guess at the agent that a command starts, by the name of its program. The configuration is the only one to ask: a
    /// wrapper with another name is told by `agent.kind`.
    pub fn of_command(command: &[String]) -> Self {
        let program = command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
        Self::ALL
            .into_iter()
            .find(|agent| *agent != Self::Program && agent.as_str() == program)
            .unwrap_or(Self::Program)
    }

    /// The abilities of this kind.
    pub const fn capabilities(self) -> Capabilities {
        match self {
            Self::Claude => Capabilities {
                hooks: true,
                prompt_argument: true,
                message_doors: true,
                record: true,
                model_flag: Some("--model"),
                screen: Screen::Claude,
            },
            Self::Codex | Self::Gemini | Self::Opencode | Self::Program => BARE,
        }
    }

    /// The hosts of its API, which the preset `agent` stands for. A program of the user's own has none that we know.
    pub const fn api_hosts(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["api.anthropic.com"],
            Self::Codex => &["api.openai.com", "chatgpt.com"],
            Self::Gemini => &["generativelanguage.googleapis.com"],
            // Its provider is the user's choice.
            Self::Opencode | Self::Program => &[],
        }
    }

    /// The variable that names the address of its API, for an agent whose API the relay knows. Any other agent reaches its API
    /// through the proxy, with a key of its own.
    pub const fn relayed_by(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("ANTHROPIC_BASE_URL"),
            Self::Codex | Self::Gemini | Self::Opencode | Self::Program => None,
        }
    }

    /// Whether a variable names another address of the API, such as `ANTHROPIC_BASE_URL`.
    pub fn is_base_url(variable: &str) -> bool {
        variable.ends_with("_BASE_URL")
    }

    /// The command of a session without a terminal whose output is a stream of turns in a conversation that the next turn takes
    /// up. None for an agent whose output is plain text: its command stays as it is.
    pub fn streaming(self, command: &[String], settings: Option<&str>) -> Option<Vec<String>> {
        match self {
            Self::Claude => Some(launch::stream(command, settings)),
            Self::Codex | Self::Gemini | Self::Opencode | Self::Program => None,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(word: &str) -> Result<Self, UnknownAgent> {
        let found = Self::ALL.into_iter().find(|agent| agent.as_str() == word);
        found.ok_or_else(|| UnknownAgent(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Agent;

    #[test]
    fn an_agent_is_the_same_word_everywhere() {
        for agent in Agent::ALL {
            let word = agent.as_str();
            assert_eq!(serde_json::to_value(agent).unwrap(), word);
            assert_eq!((word.parse(), agent.to_string()), (Ok(agent), word.to_owned()));
        }
        let error = "claud".parse::<Agent>().unwrap_err().to_string();
        assert!(
            error.contains("claud") && error.contains("claude, codex, gemini, opencode, program"),
            "{error}"
        );
    }

    #[test]
    fn an_agent_is_guessed_by_the_name_of_its_program() {
        for (command, agent) in [
            ("claude", Agent::Claude),
            ("/usr/local/bin/claude --model opus", Agent::Claude),
            ("codex", Agent::Codex),
            ("./gemini -y", Agent::Gemini),
            ("opencode", Agent::Opencode),
            ("program", Agent::Program),
            ("claude-wrapper", Agent::Program),
            ("/opt/claude/run", Agent::Program),
            ("env claude", Agent::Program),
            ("", Agent::Program),
        ] {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            assert_eq!(Agent::of_command(&words), agent, "{command}");
        }
    }

    #[test]
    fn only_an_agent_with_a_conversation_streams_its_turns() {
        let command = ["agent".to_owned()];
        for agent in Agent::ALL {
            let streams = agent.streaming(&command, None).is_some();
            assert_eq!(streams, agent.capabilities().hooks, "{agent}");
        }
    }
}
