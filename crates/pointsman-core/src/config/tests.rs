//! The configuration as users meet it: what is read, what is refused, and how that looks.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    CiKind, Config, DEFAULT_TOML, Error, ForgeKind, Origin, ReviewMode, Runtime, Span, TemplateCi, Worktree,
    template,
};
use crate::agent::Agent;
use crate::ids::ProjectName;
use crate::role::Role;

/// The example of the documentation, complete.
const EXAMPLE: &str = r#"
name = "shop"
primary_branch = "trunk"

[forge]
kind = "local"
[ci]
kind = "command"
command = ["./ci.sh"]
poll = "30s"
[agent]
runtime = "tmux"
command = ["my-agent", "--flag"]
pass_env = ["ANTHROPIC_API_KEY"]
[roles.review]
model = "sonnet"
budget = 2.5
[review]
mode = "human"
[merge]
strategy = "sequential"
style = "rebase"
gate = ["./gate.sh", "-v"]
[pr]
checklist = ["Docs updated"]
[dev]
concurrency = 3
branch = "work/{issue}"
phase_dir = "/var/tmp"
[timing]
ci_timeout = "250ms"
[limits]
ci_fixes = 0
"#;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse(text, "pointsman.toml")
}

/// The error of a file that starts with a valid name.
#[track_caller]
fn refused(rest: &str) -> Error {
    match parse(&format!("name = \"shop\"\n{rest}")) {
        Ok(_) => panic!("accepted: {rest}"),
        Err(error) => error,
    }
}

#[test]
fn the_embedded_file_is_the_default() {
    assert_eq!(Config::parse(DEFAULT_TOML, "default.toml").unwrap(), Config::default());
    let named = parse("name = \"project\"\n").unwrap();
    assert_eq!(named, Config::default());
}

#[test]
fn the_defaults_are_those_of_the_seeds() {
    let Config { timing, limits, dev, ci, agent, review, .. } = Config::default();
    let hours = |h: u64| Span(Duration::from_secs(h * 3600));
    let minutes = |m: u64| Span(Duration::from_secs(m * 60));
    assert_eq!((timing.ci_timeout, timing.review_timeout), (minutes(30), hours(3)));
    assert_eq!((timing.escalation_renotify, timing.escalation_timeout), (hours(6), hours(24)));
    assert_eq!(timing.queue_timeout, hours(24));
    assert_eq!((timing.session_timeout, timing.stale_after), (hours(2), minutes(5)));
    assert_eq!((timing.action_idle_timeout, timing.action_max_lifetime), (hours(4), hours(8)));
    assert_eq!((timing.supervisor_session, timing.vault_timeout), (minutes(20), hours(48)));
    assert_eq!((limits.ci_fixes, limits.review_rounds, limits.infra_retries), (3, 5, 1));
    assert_eq!((limits.idle_looks, limits.restarts), (3, 5));
    assert_eq!((dev.concurrency, dev.branch.as_str()), (1, "pointsman/issue-{issue}"));
    assert_eq!((dev.phase_dir.to_str(), dev.worktree), (Some("/tmp"), Worktree::Private));
    assert_eq!((ci.kind, ci.command, ci.concurrency), (CiKind::None, None, 2));
    assert_eq!(agent.command, ["claude", "--dangerously-skip-permissions"]);
    assert_eq!(review.mode, ReviewMode::Human);
}

#[test]
fn a_full_file_is_read() {
    let config = parse(EXAMPLE).unwrap();
    assert_eq!(config.name.as_str(), "shop");
    assert_eq!(config.primary_branch, "trunk");
    assert_eq!(config.agent.command, ["my-agent", "--flag"]);
    assert_eq!(config.roles.review.model.as_deref(), Some("sonnet"));
    let budget = config.roles.review.budget.as_ref().and_then(|budget| budget.usd_per_session);
    assert_eq!(budget.map(|usd| usd.to_string()).as_deref(), Some("2.50"));
    assert_eq!(config.gate(), Some(&["./gate.sh".to_owned(), "-v".to_owned()][..]));
    assert_eq!(config.branch(12), "work/12");
    assert_eq!(config.timing.ci_timeout, Span::from_millis(250));
    assert_eq!(config.timing.review_timeout, Config::default().timing.review_timeout);
    assert_eq!(config.unsupported(), Vec::<String>::new());
    assert_eq!(parse(&EXAMPLE.replace('\n', "\r\n")).unwrap(), config);
}

#[test]
fn a_command_implies_its_kind_unless_a_word_says_otherwise() {
    let config = parse("name = \"a\"\nci.command = [\"make\"]\nreview.command = [\"./review\"]").unwrap();
    assert_eq!((config.ci.kind, config.review.mode), (CiKind::Command, ReviewMode::Agent));
    assert_eq!(config.gate(), Some(&["make".to_owned()][..]));
    assert_eq!(config.unsupported(), Vec::<String>::new());
    let human = parse("name = \"a\"\n[review]\nmode = \"human\"\ncommand = [\"x\"]").unwrap();
    assert_eq!((human.review.mode, human.gate()), (ReviewMode::Human, None));
}

#[test]
fn shares_of_the_context_rise() {
    let wrong = |text: &str| parse(&format!("name = \"a\"\n[context]\n{text}\n")).unwrap_err().to_string();
    assert!(wrong("low = 0.9").contains("`context.low`: it is larger than medium (0.85)"));
    assert!(wrong("medium = 0.95").contains("`context.medium`: it is larger than high (0.92)"));
    assert!(parse("name = \"a\"\n[context]\nlow = 0.5\nmedium = 0.5\nhigh = 0.5\n").is_ok());
}

#[test]
fn changed_keys_are_named_once() {
    let before = parse("name = \"a\"\n[ci]\ncommand = [\"x\"]\n[dev]\nconcurrency = 2\n").unwrap();
    let after = parse("name = \"a\"\n[ci]\ncommand = [\"y\"]\n[timing]\nci_timeout = \"1m\"\n").unwrap();
    // The gate is the CI's command, so it changes with it.
    assert_eq!(
        before.changed_keys(&after),
        ["ci.command", "dev.concurrency", "merge.gate", "timing.ci_timeout"]
    );
    assert!(before.changed_keys(&before).is_empty());
}

#[test]
fn a_command_that_ci_would_never_run_is_an_error_with_its_line() {
    let error = parse("name = \"a\"\n[ci]\nkind = \"none\"\ncommand = [\"./ci.sh\"]\n").unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains(":4") && shown.contains("`ci.kind` is \"none\""), "{shown}");
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_likely_word() {
    let error = refused("\n[ci]\n  comand = [\"./ci.sh\"]\n");
    assert_eq!((error.line(), error.column(), error.about()), (4, 3, Some("ci.comand")));
    assert_eq!(
        error.to_string(),
        "pointsman.toml:4:3: unknown key `ci.comand`\n  |\n4 |   comand = [\"./ci.sh\"]\n  |   ^^^^^^\n  \
         = did you mean `command`?"
    );
    let cases = [
        ("primary_brunch = \"main\"", "unknown key `primary_brunch`", "did you mean `primary_branch`?"),
        ("primary-branch = \"main\"", "unknown key `primary-branch`", "did you mean `primary_branch`?"),
        ("[timimg]\nci_timeout = \"1s\"", "unknown key `timimg`", "did you mean `timing`?"),
        ("[ci]\nci_timeout = \"1s\"", "unknown key `ci.ci_timeout`", "did you mean `timing.ci_timeout`?"),
        ("[roles.rewiew]\nmodel = \"x\"", "unknown key `roles.rewiew`", "did you mean `review`?"),
        ("[roles.dev]\nmodle = \"x\"", "unknown key `roles.dev.modle`", "did you mean `model`?"),
        ("timing = { ci_timeuot = \"1s\" }", "unknown key `timing.ci_timeuot`", "did you mean `ci_timeout`?"),
        ("[pr]\nzzz = 1", "unknown key `pr.zzz`", "known here: checklist"),
        (
            "[web]\nlisten = \"\"",
            "`[web]` belongs to the machine's file: it holds for all projects",
            crate::words::config::MACHINE_FILE,
        ),
        (
            "[people]\nann = {}",
            "`[people]` belongs to the machine's file: it holds for all projects",
            crate::words::config::MACHINE_FILE,
        ),
    ];
    for (text, message, hint) in cases {
        let error = refused(text);
        assert_eq!((error.message(), error.advice()), (message, Some(hint)), "{text}");
    }
}

#[test]
fn wrong_values_name_the_key_and_the_line() {
    // (file after its first line, line, key, part of the message)
    let cases = [
        ("[ci]\nkind = \"comand\"", 3, "ci.kind", "`ci.kind` cannot be \"comand\""),
        ("[notify]\nto = [\"mail\"]", 3, "notify.to", "cannot be \"mail\""),
        ("[notify]\nto = [\"matrix\"]", 3, "notify.to", "needs the key `matrix.homeserver`"),
        ("[notify]\nquiet_hours = \"22-7\"", 3, "notify.quiet_hours", "must be hours of the day"),
        ("[notify]\ntimezone = \"$(id)\"", 3, "notify.timezone", "the name of a time zone"),
        ("[webhook]\nurl = \"https://u:p@h/x\"", 3, "webhook.url", "user name or password"),
        ("[webhook]\nurl_file = \"hook\"", 3, "webhook.url_file", "an absolute path"),
        ("[matrix]\nroom = \"ops\"", 3, "matrix.room", "#ops:example.org"),
        ("[matrix]\nroom = \"#ops\"", 3, "matrix.room", "#ops:example.org"),
        ("[matrix]\npeople = [\"ann\"]", 3, "matrix.people", "written @name:server"),
        ("[agent]\npass_env = [\"WEBHOOK_URL\"]", 3, "agent.pass_env", "holds a credential"),
        ("[ci]\npoll = 30", 3, "ci.poll", "a duration in quotes"),
        ("[ci]\npoll = \"30\"", 3, "ci.poll", "write a number and a unit"),
        ("[ci]\npoll = \"0s\"", 3, "ci.poll", "at least 1ms"),
        ("[timing]\nidle_look = \"0ms\"", 3, "timing.idle_look", "at least 1ms"),
        ("[timing]\nci_timeout = \"-1s\"", 3, "timing.ci_timeout", "negative"),
        ("[timing]\nci_timeout = \"999999d\"", 3, "timing.ci_timeout", "hundred years"),
        (
            "[timing]\nrestart_backoff = \"1h\"",
            3,
            "timing.restart_backoff",
            "longer than restart_backoff_max (10m)",
        ),
        (
            "[timing]\nrestart_backoff_max = \"1s\"",
            3,
            "timing.restart_backoff_max",
            "shorter than restart_backoff (5s)",
        ),
        ("[limits]\nci_fixes = -1", 3, "limits.ci_fixes", "invalid value"),
        ("[limits]\nci_fixes = 4294967296", 3, "limits.ci_fixes", "invalid value"),
        ("[limits]\nci_fixes = \"3\"", 3, "limits.ci_fixes", "expected a whole number"),
        ("[limits]\nidle_looks = 0", 3, "limits.idle_looks", "at least 1"),
        ("[dev]\nconcurrency = 0", 3, "dev.concurrency", "between 1 and 1000"),
        ("[ci]\nconcurrency = 1001", 3, "ci.concurrency", "between 1 and 1000"),
        ("[dev]\nbranch = \"work\"", 3, "dev.branch", "must contain `{issue}`"),
        ("[dev]\nbranch = \"a..{issue}\"", 3, "dev.branch", "it contains `..`"),
        ("[dev]\nphase_dir = \"tmp\"", 3, "dev.phase_dir", "absolute path"),
        ("[dev]\nphase_dir = \"/tmp/../etc\"", 3, "dev.phase_dir", "absolute path"),
        ("primary_branch = \"--upload-pack=x\"", 2, "primary_branch", "starts with `-`"),
        ("[ci]\nkind = \"command\"", 3, "ci.kind", "needs the key `ci.command`"),
        ("[ci]\ncommand = []", 3, "ci.command", "it is empty"),
        ("[ci]\ncommand = [\" \"]", 3, "ci.command", "program's name is empty"),
        ("[ci]\ncommand = \"./ci.sh\"", 3, "ci.command", "expected a list"),
        ("[agent]\ncommand = []", 3, "agent.command", "it is empty"),
        ("[merge]\ngate = []", 3, "merge.gate", "it is empty"),
        ("[roles.dev]\ncommand = [\"\"]", 3, "roles.dev.command", "program's name is empty"),
        ("[roles.dev]\nmodel = \"--yolo\"", 3, "roles.dev.model", "not the name of a model"),
        ("[roles.planner]\nschedule = \"weekly\"", 3, "roles.planner.schedule", "five fields"),
        ("[roles.dev]\nbudget = -1", 3, "roles.dev.budget", "US dollars"),
        ("[roles.dev]\nbudget = \"2\"", 3, "roles.dev.budget", "or a table with the keys of [budget]"),
        ("[roles.dev.budget]\nusd_per_year = 1", 3, "roles.dev.budget.usd_per_year", "unknown key"),
        ("[roles.dev.budget]\ntime_per_day = 8", 3, "roles.dev.budget.time_per_day", "a duration in quotes"),
        ("[agent]\npass_env = [\"A=B\"]", 3, "agent.pass_env", "not the name"),
        ("[agent]\npass_env = [\"GITHUB_TOKEN\"]", 3, "agent.pass_env", "credential"),
        ("[agent]\npass_env = [\"MINE\"]\n[matrix]\ntoken_env = \"MINE\"", 3, "agent.pass_env", "credential"),
        ("[agent]\npass_env = [\"PHASE_FILE\"]", 3, "agent.pass_env", "set by Pointsman"),
        ("[pr]\nchecklist = [\"a\\nb\"]", 3, "pr.checklist", "one line"),
        ("[forge]\nurl = \"codeberg.org\"", 3, "forge.url", "an address such as"),
        ("[forge]\nurl = \"https://me:pw@codeberg.org\"", 3, "forge.url", "user name or password"),
        ("[forge]\nrepo = \"--x\"", 3, "forge.repo", "owner/name"),
        ("ci = 3", 2, "ci", "is a table"),
        ("pr = [[]]", 2, "pr", "is a table"),
        ("roles.dev = [true]", 2, "roles.dev", "is a table"),
        ("[[ci]]\nkind = \"none\"", 2, "ci", "is a table"),
    ];
    for (text, line, key, message) in cases {
        let error = refused(text);
        assert_eq!((error.line(), error.about()), (line, Some(key)), "{text}: {error}");
        assert!(error.message().contains(message) && error.message().contains(key), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("pointsman.toml:{line}:")), "{error}");
    }
}

#[test]
fn the_name_is_required_and_follows_the_rule() {
    let missing = parse("primary_branch = \"main\"\n").unwrap_err();
    assert_eq!((missing.line(), missing.message()), (1, "the key `name` is missing"));
    assert!(parse("").unwrap_err().to_string().contains("`name` is missing"));
    for bad in ["", "-a", "Shop", "a b", "$(id)", "../x"] {
        let error = parse(&format!("# first\nname = \"{bad}\"\n")).unwrap_err();
        assert_eq!((error.line(), error.about()), (2, Some("name")), "{bad}");
    }
}

#[test]
fn broken_syntax_is_shown_where_it_breaks() {
    for (text, line) in
        [("name = ", 1), ("name = \"a\"\n[ci\n", 2), ("name = \"a\"\nname = \"b\"", 2), ("a\u{0}", 1)]
    {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line(), line, "{text:?}: {error}");
    }
    assert_eq!(
        parse("name").unwrap_err().to_string(),
        "pointsman.toml:1:5: key with no value, expected `=`\n  |\n1 | name\n  |     ^"
    );
    let big = format!("name = \"a\"\n#{}", "x".repeat(1 << 20));
    assert!(parse(&big).unwrap_err().message().contains("larger than 1 MiB"));
}

#[test]
fn a_secret_is_refused_and_not_repeated() {
    let cases = [
        "[forge]\ntoken = \"s3cr3t\"",
        "forge.token = \"s3cr3t\"",
        "forge = { kind = \"local\", token = \"s3cr3t\" }",
        "[matrix]\npassword = \"s3cr3t\"",
        "[matrix]\naccess_token = \"s3cr3t\"",
        "[vault]\n\"api-key\" = \"s3cr3t\"",
    ];
    for text in cases {
        let error = refused(text).to_string();
        assert!(error.contains("would put a secret into the repository"), "{text}: {error}");
        assert!(error.contains("token_env"), "{error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    }
    let pasted = refused("[forge]\ntoken_env = \"ghp-s3cr3t\"").to_string();
    assert!(pasted.contains("not the secret itself") && !pasted.contains("s3cr3t"), "{pasted}");
    let torn = refused("[forge]\ntoken = \"s3cr3t").to_string();
    assert!(!torn.contains("s3cr3t"), "{torn}");
}

#[test]
fn a_forge_on_a_server_needs_its_address_and_repository() {
    let full =
        "name = \"a\"\n[forge]\nkind = \"forgejo\"\nurl = \"https://codeberg.org\"\nrepo = \"me/shop\"\n";
    let config = parse(full).unwrap();
    assert_eq!((config.forge.token_env(), config.unsupported().len()), (Some("CODEBERG_TOKEN"), 0));
    for key in ["url", "repo"] {
        let lacking: String =
            full.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect();
        let error = parse(&lacking).unwrap_err().to_string();
        assert!(error.contains(&format!("it needs the key `forge.{key}`")), "{error}");
    }
    for (text, lacking) in [("", "woodpecker.url"), ("[woodpecker]\nurl = \"https://ci.example\"", "repo_id")]
    {
        let text = format!("name = \"a\"\nci.kind = \"woodpecker\"\n{text}\n");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(lacking), "{error}");
    }
    let error = parse(&format!("{full}token_file = \"token\"\n")).unwrap_err().to_string();
    assert!(error.contains("it must be an absolute path"), "{error}");
}

#[test]
fn an_agent_is_named_or_guessed_once_from_the_program_that_is_run() {
    let kinds = |text: &str| {
        let config = parse(&format!("name = \"a\"\n{text}")).unwrap();
        (config.agent_kind(Role::Dev), config.agent_kind(Role::Review))
    };
    for (text, dev, review) in [
        ("", Agent::Claude, Agent::Claude),
        ("agent.command = [\"/opt/bin/codex\"]", Agent::Codex, Agent::Codex),
        ("agent.command = [\"./agent.sh\"]", Agent::Program, Agent::Program),
        ("agent = { command = [\"./agent.sh\"], kind = \"claude\" }", Agent::Claude, Agent::Claude),
        ("agent.kind = \"program\"", Agent::Program, Agent::Program),
        ("roles.review.command = [\"gemini\"]", Agent::Claude, Agent::Gemini),
        ("roles.review = { command = [\"./r\"], kind = \"opencode\" }", Agent::Claude, Agent::Opencode),
        ("agent.kind = \"codex\"\nroles.review.kind = \"claude\"", Agent::Codex, Agent::Claude),
    ] {
        assert_eq!(kinds(text), (dev, review), "{text}");
    }
    let error = refused("agent.kind = \"claud\"").to_string();
    assert!(error.contains("claud") && error.contains("opencode"), "{error}");
}

#[test]
fn a_role_can_be_run_in_another_way_than_the_rest() {
    let text = r#"
        name = "a"
        agent = { runtime = "headless" }
        roles = { review = { runtime = "tmux" } }
    "#;
    let config = parse(text).unwrap();
    assert_eq!((config.runtime(Role::Dev), config.runtime(Role::Review)), (Runtime::Headless, Runtime::Tmux));
    assert_eq!(parse("name = \"a\"").unwrap().runtime(Role::Dev), Runtime::Tmux);
    assert!(config.unsupported().is_empty());
    assert!(!config.wants_terminals(), "the review role does not work");
    assert!(parse("name = \"a\"").unwrap().wants_terminals());
}

#[test]
fn what_is_not_built_yet_is_read_and_said() {
    let text = r#"
        name = "a"
        forge = { kind = "forgejo", url = "https://f.example", repo = "me/shop", board = "3" }
    "#;
    let config = parse(text).unwrap();
    assert_eq!(config.forge.kind, ForgeKind::Forgejo);
    assert_eq!(config.forge.token_env(), Some("CODEBERG_TOKEN"));
    let all = config.unsupported();
    let keys = ["forge.board = \"3\""];
    assert_eq!(all.len(), keys.len(), "{all:#?}");
    for (sentence, key) in all.iter().zip(keys) {
        assert!(
            sentence.starts_with(key) && sentence.contains("not supported by this version yet"),
            "{sentence}"
        );
    }
}

#[test]
fn a_review_agent_is_wanted_in_one_word() {
    for text in ["roles.review.enabled = true", "review.mode = \"agent\""] {
        let config = parse(&format!("name = \"a\"\n{text}")).unwrap();
        assert_eq!((config.review.mode, config.roles.review.enabled), (ReviewMode::Agent, true), "{text}");
        assert!(config.review_agent() && config.unsupported().is_empty());
    }
    let program = parse("name = \"a\"\nreview.command = [\"./review\"]").unwrap();
    assert!(!program.review_agent() && !program.roles.review.enabled);
    for (text, why) in [
        ("review.mode = \"human\"\nroles.review.enabled = true", "works with review.mode"),
        ("review.command = [\"./r\"]\nroles.review.enabled = true", "without review.command"),
        ("review.mode = \"agent\"\nroles.review.enabled = false", "needs the review agent"),
        ("review.protected = [\"../x\"]", "each entry must be a path"),
        ("review.concurrency = 0", "between 1 and"),
    ] {
        let error = refused(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn each_entry_knows_where_it_comes_from() {
    let text = "name = \"a\"\n\n[ci]\ncommand = [\"make\", \"test\"]\n[timing]\nci_timeout = \"90s\"\n";
    let (config, entries) = Config::parse_with_origin(text, "pointsman.toml").unwrap();
    let find = |key: &str| {
        let entry =
            entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("{key} is not shown"));
        (entry.value.as_str(), entry.origin)
    };
    assert_eq!(find("name"), ("\"a\"", Origin::File { line: 1 }));
    assert_eq!(find("primary_branch"), ("\"main\"", Origin::Default));
    assert_eq!(find("ci.command"), ("[\"make\", \"test\"]", Origin::File { line: 4 }));
    assert_eq!(find("ci.kind"), ("\"command\"", Origin::File { line: 4 }));
    assert_eq!(find("merge.gate"), ("[\"make\", \"test\"]", Origin::File { line: 4 }));
    assert_eq!(find("timing.ci_timeout"), ("\"1m30s\"", Origin::File { line: 6 }));
    assert_eq!(find("timing.escalation_timeout"), ("\"24h\"", Origin::Default));
    assert_eq!(find("review.mode"), ("\"human\"", Origin::Default));
    let pairs: Vec<(String, String)> = entries.iter().map(|e| (e.key.clone(), e.value.clone())).collect();
    assert_eq!(pairs, config.entries());
    assert_eq!(pairs[0].0, "name");
}

#[test]
fn the_entries_are_a_file_that_says_the_same() {
    for config in [Config::default(), parse(EXAMPLE).unwrap()] {
        let file: String = config.entries().iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        assert_eq!(parse(&file).unwrap().entries(), config.entries());
    }
}

#[test]
fn what_init_writes_is_read_back() {
    let name = ProjectName::new("shop").unwrap();
    let command = ["sh".to_owned(), "-c".to_owned(), "make \"all\" \\ && true".to_owned()];
    let with_ci = template(&name, "feature/ü\"x", None, TemplateCi::Command(&command), Some(&command));
    let config = parse(&with_ci).unwrap();
    assert_eq!((config.name.as_str(), config.primary_branch.as_str()), ("shop", "feature/ü\"x"));
    assert_eq!((config.ci.kind, config.gate()), (CiKind::Command, Some(&command[..])));
    assert_eq!(config.agent.command, command);
    let without = template(&name, "main", None, TemplateCi::Off, None);
    assert!(!without.contains("# command = [\"./"), "beside \"none\" a command would be a mistake");
    let without = parse(&without).unwrap();
    let on_forge = template(&name, "main", None, TemplateCi::Forge, None);
    assert_eq!(parse(&on_forge).unwrap().ci.kind, CiKind::Forge);
    assert_eq!(without, Config { name: name.clone(), ..Config::default() });
    // What stands there as a comment is the default: with the hash removed nothing changes.
    let uncommented = template(&name, "main", None, TemplateCi::Off, None);
    let uncommented: String = uncommented
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(parse(&uncommented).unwrap(), without);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "(?s)(name = \"a\"|\n|\\[ci\\]|kind|[a-zü.]{1,9}| = |\"|'|\\[|\\]|\\{|\\}|[0-9]|.){0,40}") {
        if let Err(error) = parse(&text) {
            let shown = error.to_string();
            prop_assert!(error.line() >= 1 && error.column() >= 1);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
            prop_assert!(shown.lines().count() <= 5, "{}", shown);
        }
    }
}

#[test]
fn a_role_may_have_a_budget_of_its_own() {
    let text = "name = \"p\"\n[roles.dev.budget]\nturns_per_task = 40\ntime_per_day = \"8h\"\n";
    let budget = Config::parse(text, "test").unwrap().roles.dev.budget.unwrap();
    assert_eq!((budget.turns_per_task, budget.turns_per_day, budget.usd_per_session), (Some(40), None, None));
    assert_eq!(budget.time_per_day.unwrap().to_string(), "8h");
}

#[test]
fn hosts_of_the_sandbox_are_looked_at_when_the_file_is_read() {
    for (key, line) in
        [("[sandbox]\nhosts", 3), ("[sandbox]\nci_hosts", 3), ("[roles.action.sandbox]\nhosts", 3)]
    {
        for entry in
            ["https://example.org", "example.org:0", "example.org:http", "10.0.0.1", "a b", "*", "a..b", ""]
        {
            let text = format!("name = \"p\"\n{key} = [\"packages\", {entry:?}]\n");
            let error = Config::parse(&text, "pointsman.toml").unwrap_err().to_string();
            assert!(error.starts_with(&format!("pointsman.toml:{line}:")), "{error}");
            assert!(error.contains("is not a host"), "{error}");
        }
        let good = "\"agent\", \"example.org\", \"*.example.org:8443\", \"127.0.0.1:80\", \"[::1]:80\", \"a_b.example.org.\"";
        assert!(Config::parse(&format!("name = \"p\"\n{key} = [{good}]\n"), "pointsman.toml").is_ok());
    }
}

#[test]
fn a_vault_type_is_an_operators_program_and_dangerous_without_a_word() {
    let parse = |text: &str| Config::parse(&format!("name = \"p\"\n{text}"), "pointsman.toml");
    let config = parse("[vault.types.deploy]\ncommand = [\"/usr/bin/deploy\"]\n").unwrap();
    let deploy = &config.vault.types["deploy"];
    assert_eq!((deploy.risk, deploy.reversible), (crate::vault::Risk::High, false));
    let wrong = [
        ("[vault.types.deploy]\ncommand = [\"./deploy\"]", "absolute path"),
        ("[vault.types.deploy]\ncommand = [\"/home/../tmp/deploy\"]", "absolute path"),
        ("[vault.types.deploy]\ncommand = []", "it is empty"),
        ("[vault.types.deploy]\nrisk = \"low\"", "either the key `command` or the key `url`"),
        ("[vault.types.d]\ncommand = [\"/x\"]\nurl = \"https://a/\"", "either the key"),
        (
            "[vault.types.d]\nurl = \"https://example.org/hook\"",
            "host example.org is not listed in vault.hosts",
        ),
        (
            "[vault]\nhosts = [\"example.org\"]\n[vault.types.d]\nurl = \"http://example.org/\"",
            "use https://",
        ),
        ("[vault]\nhosts = [\"https://example.org\"]", "each entry must be a host"),
        ("[vault.types.d]\ncommand = [\"/x\"]\nsecret_files = [\"KEY=s3cr3t\"]", "written NAME=/path"),
        ("[vault.types.d]\ncommand = [\"/x\"]\nsecret_files = [\"s3cr3t\"]", "written NAME=/path"),
        ("[vault.types.d]\ncommand = [\"/x\"]\ntoken_env = \"KEY\"", "a program has `secrets`"),
        (
            "[vault]\nhosts = [\"a\"]\n[vault.types.d]\nurl = \"https://a/\"\ntoken_file = \"token\"",
            "absolute path",
        ),
        (
            "[vault]\nhosts = [\"a\"]\n[vault.types.d]\nurl = \"https://a/\"\nsecrets = [\"KEY\"]",
            "a call has `token_env`",
        ),
        (
            "[vault]\nhosts = [\"a\"]\n[vault.types.d]\nurl = \"https://a/\"\nallow_sudo = true",
            "a call starts no program",
        ),
        (
            "[agent]\npass_env = [\"KEY\"]\n[vault]\nhosts = [\"a\"]\n[vault.types.d]\nurl = \"https://a/\"\n\
             token_env = \"KEY\"",
            "agents never get one",
        ),
        ("[vault.types.deploy]\ncommand = [\"/x\"]\nrisk = \"none\"", "cannot be \"none\""),
        ("[vault.types.deploy]\ncommand = [\"/x\"]\nsecrets = [\"s3cr3t value\"]", "not the secret itself"),
        ("[vault.types.\"a b\"]\ncommand = [\"/x\"]", "the name of a type has the form"),
        (
            "[agent]\npass_env = [\"KEY\"]\n[vault.types.d]\ncommand = [\"/x\"]\nsecrets = [\"KEY\"]",
            "agents never get one",
        ),
        ("[vault]\npeople = [\"\"]", "the name of a person"),
    ];
    for (text, message) in wrong {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(message) && !error.contains("s3cr3t"), "{text}: {error}");
    }
}

#[test]
fn ac_1_2_ac_1_3_ac_2_2_ac_4_2_ac_4_4_the_default_times_are_those_that_were_asked_for() {
    let timing = Config::default().timing;
    let seconds = |span: Span| span.duration().as_secs();
    assert_eq!(seconds(timing.heartbeat), 60, "last_seen");
    assert_eq!(seconds(timing.stale_after), 5 * 60, "a stale identity");
    assert!(seconds(timing.phase_rescan) < 30, "a phase of work is seen");
    assert_eq!(seconds(timing.handoff_timeout), 60, "for a clean exit");
    let handed_over =
        seconds(timing.handoff_timeout) + seconds(timing.stop_grace) + seconds(timing.start_grace);
    assert!(handed_over <= 90, "to the successor, at the very worst: {handed_over}");
}
