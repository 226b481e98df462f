//! Mistakes in `pointsman.toml`, for whoever wrote it. Most of them follow the key they are about: `` `ci.kind`: it needs … ``.

use std::fmt::Display;

use crate::config::PortRange;
use crate::text::clean_line;

// The file as a whole.
pub const FILE_TOO_LARGE: &str = "the file is larger than 1 MiB";
pub const NAME_MISSING: &str = "the key `name` is missing";
pub const NAME_MISSING_HINT: &str = "add name = \"my-project\"";
pub const SECRET_IN_FILE_HINT: &str =
    "name the variable that holds it with token_env, or use token_file or token_command";

// Values of a certain shape.
pub const NOT_A_PLAIN_PATH: &str = "it must be an absolute path without `..`";
pub const NOT_ABSOLUTE: &str = "it must be an absolute path";
pub const NOT_A_VARIABLE: &str = "it must be the name of an environment variable, not the secret itself";
pub const NOT_ALL_VARIABLES: &str =
    "each entry must be the name of an environment variable, not the secret itself";
pub const NOT_AN_ADDRESS: &str = "it must be an address such as https://codeberg.org";
pub const PASSWORD_IN_ADDRESS: &str = "it contains a user name or password; use token_env instead";
pub const NOT_A_TIME_ZONE: &str = "it must be the name of a time zone, such as Europe/Berlin";
pub const NOT_A_MODEL: &str = "it is not the name of a model";
pub const NOT_A_FORMULA: &str = "it is not the name of a formula";
pub const NOT_A_FORMULA_VARIABLE: &str =
    "the name of a variable consists of lower-case letters, digits and _";
pub const ZERO_DURATION: &str = "it must be at least 1ms";
pub const ZERO: &str = "it must be at least 1";
pub const NOT_A_PERCENTAGE: &str = "it must be between 0 and 100";

// What a value must be, after "expected".
pub const WHOLE_NUMBER: &str = "a whole number from 0 up";
pub const SIZE: &str = "a size in quotes, such as \"512MB\" or \"8GB\"";
pub const PORT_RANGE: &str = "two ports from 1024 up in quotes, such as \"42000-42999\"";
pub const DURATION: &str = "a duration in quotes, such as \"30s\"";
pub const SHARE: &str = "a share between 0 and 1, such as 0.75";
pub const DOLLARS: &str = "an amount in US dollars between 0 and 1000000, such as 2.50";
pub const OR_BUDGET_TABLE: &str = ", or a table with the keys of [budget]";

// Durations.
pub const DURATION_SHAPE: &str =
    "write a number and a unit, such as \"250ms\", \"30s\", \"5m\", \"3h\", \"7d\" or \"1h30m\"";
pub const DURATION_NEGATIVE: &str = "it is negative";
pub const DURATION_TOO_LONG: &str = "it is longer than a hundred years";
pub const DURATION_UNITS_OUT_OF_ORDER: &str =
    "each unit may appear only once, and the longer unit comes first";

// Programs.
pub const CI_COMMAND_MISSING: &str = "it needs the key `ci.command`, the program to run and its arguments";
pub const CI_COMMAND_MISSING_HINT: &str = "add command = [\"./ci.sh\"], or set kind = \"none\"";
pub const CI_COMMAND_UNUSED: &str = "it would never run, because `ci.kind` is \"none\"";
pub const CI_COMMAND_UNUSED_HINT: &str =
    "to run it, set kind = \"command\"; to have no CI, remove the command";
pub const COMMAND_EMPTY: &str = "it is empty; write a program and its arguments, such as [\"./ci.sh\"]";
pub const PROGRAM_EMPTY: &str = "the program's name is empty";
pub const COMMAND_WITH_NUL: &str = "it contains a NUL character";

// Services.
pub const NOT_A_REPOSITORY: &str = "it must be the repository: an absolute path or an address of git";
pub const FORGE_ADDRESS_HINT: &str = "such as url = \"https://codeberg.org\" and repo = \"owner/name\"";
pub const WOODPECKER_URL_MISSING: &str = "it needs the key `woodpecker.url`";
pub const WOODPECKER_REPO_MISSING: &str = "it needs the key `woodpecker.repo_id`, or `forge.repo`";
pub const NOT_OWNER_AND_NAME: &str = "it must be written owner/name";
pub const NOT_AN_APP_ID: &str = "it must be the number or the client id of a GitHub App";
pub const APP_INCOMPLETE: &str = "an App needs both keys: app_id and app_key_file";
pub const APP_ELSEWHERE: &str = "only GitHub has Apps";
pub const NOT_A_BOARD: &str = "it must be a project's number, `owner/number`, or its address on GitHub";
pub const MATRIX_HINT: &str =
    "such as homeserver = \"https://matrix.example.org\" and room = \"#ops:example.org\"";
pub const NOT_A_ROOM: &str = "it must be a room such as !abc:example.org or #ops:example.org";
pub const NOT_ALL_MATRIX_PEOPLE: &str = "each entry must be written @name:server";

// Reviews, checks and files.
pub const REVIEW_AGENT_UNUSED: &str =
    "the review agent works with review.mode = \"agent\" or \"risk\" and without review.command";
pub const REVIEW_AGENT_MISSING: &str = "this review.mode needs the review agent, or review.command";
pub const NOT_A_PERSON: &str =
    "must be \"person\" or \"two_people\": what no rule understood is in such a class";
pub const NOT_A_RISK_RULE: &str = "each rule needs `when` and `class`; `paths` only with when = \"paths\" or \"other_paths\", `limit` only with \"lines\", \"reverted\" or \"unproven\"";

/// A class that fewer look at than at a lower one.
pub fn looked_at_by_fewer(lower: &str) -> String {
    format!("needs no less than {lower}")
}
pub const NOT_ALL_CHECKS: &str = "each entry must be the name of a check";
pub const NOT_ALL_LINES: &str = "each entry must be one line of text";
pub const NOT_ALL_UNION_PATHS: &str =
    "each entry must be a path such as CHANGELOG.md or docs/*.log, of letters, digits and ._-/*?+@";
pub const NOT_ALL_PROTECTED_PATHS: &str =
    "each entry must be a path such as deploy/ or **/*.sql, of letters, digits and ._-/*?+@";
pub const NOT_ALL_COPIED_PATHS: &str =
    "each entry must be a path inside the checkout such as .env or certs/**, of letters, digits and ._-/*?+@";
pub const NOT_ALL_ALLOWED_SECRETS: &str =
    "each entry must be a path such as tests/data/ or **/*.pem, or sha256: with 16 digits";

// The vault.
pub const NOT_ALL_PEOPLE: &str = "each entry must be the name of a person";
pub const NOT_ALL_HOSTS: &str = "each entry must be a host, such as example.org or [::1]:8080";
pub const NOT_A_VAULT_TYPE: &str = "the name of a type has the form [a-z0-9][a-z0-9._-]{0,63}";
pub const COMMAND_OR_URL: &str = "it needs either the key `command` or the key `url`";
pub const PROGRAM_NOT_A_PLAIN_PATH: &str = "the program must be an absolute path without `..`";
pub const NOT_ALL_SECRET_FILES: &str =
    "each entry must be written NAME=/path, with an absolute path without `..`";
pub const TOKEN_FOR_PROGRAM: &str = "token_env and token_file go with `url`; a program has `secrets`";
pub const SECRETS_FOR_CALL: &str = "secrets and secret_files go with `command`; a call has `token_env`";

// Names that git does not accept for a branch.
pub const BRANCH_EMPTY: &str = "it is empty";
pub const BRANCH_TOO_LONG: &str = "it is longer than 200 bytes";
pub const BRANCH_STARTS_WITH_DASH: &str = "it starts with `-`";
pub const BRANCH_RESERVED: &str = "git keeps this name for itself";
pub const BRANCH_WITH_SPACE: &str = "it contains a space or a control character";
pub const BRANCH_WITH_MARK: &str = "it contains one of ~ ^ : ? * [ \\";
pub const BRANCH_WITH_DOTS: &str = "it contains `..`";
pub const BRANCH_WITH_REFLOG_MARK: &str = "it contains `@{`";
pub const BRANCH_ENDS_WITH_DOT: &str = "it ends in `.`";
pub const BRANCH_WITH_EMPTY_PART: &str = "it starts or ends with `/` or contains `//`";
pub const BRANCH_PART_HIDDEN: &str = "a part of it starts with `.`";
pub const BRANCH_PART_LOCKED: &str = "a part of it ends in `.lock`";
pub const TEMPLATE_WITHOUT_ISSUE: &str = "it must contain `{issue}`, or all tasks would share one branch";
pub const TEMPLATE_PLACEHOLDER: &str = "`{issue}` is the only placeholder";

/// A mistake in the value of a key.
pub fn wrong_value(key: &str, why: impl Display) -> String {
    format!("`{key}`: {why}")
}

/// The advice where a project has a table of the machine's file.
pub const MACHINE_FILE: &str =
    "the machine's file is $XDG_CONFIG_HOME/pointsman/config.toml, or what POINTSMAN_MACHINE_CONFIG names";

/// A table that belongs to the machine's file.
pub fn of_the_machine(table: &str) -> String {
    format!("`[{table}]` belongs to the machine's file: it holds for all projects")
}

/// A key that nothing reads.
pub fn unknown_key(key: &str) -> String {
    format!("unknown key `{}`", clean_line(key, 60))
}

/// The key that was probably meant.
pub fn did_you_mean_key(better: &str) -> String {
    format!("did you mean `{better}`?")
}

/// All keys of a table, if none of them was probably meant.
pub fn known_keys(known: &[&str]) -> String {
    format!("known here: {}", known.join(", "))
}

/// A word that is none of those the key accepts.
pub fn unknown_word(key: &str, wrong: &str) -> String {
    format!("`{key}` cannot be \"{}\"", clean_line(wrong, 40))
}

/// The words that a key accepts, and the one that was probably meant.
pub fn accepted_words(better: Option<&str>, known: &[&str]) -> String {
    let known = known.join(", ");
    match better {
        Some(better) => format!("did you mean \"{better}\"? (one of {known})"),
        None => format!("one of {known}"),
    }
}

/// A value where a table belongs.
pub fn not_a_table(key: &str, found: &str) -> String {
    format!("`{key}` is a table, not of the type {found}")
}

/// The way to begin that table.
pub fn write_table(key: &str) -> String {
    format!("write [{key}]")
}

/// A value of the wrong type, with the name of the right one as people know it.
pub fn wrong_type(found: &str, expected: &str) -> String {
    let expected = match expected {
        "u32" | "u64" => WHOLE_NUMBER,
        "a sequence" => "a list in [ ]",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        other => other,
    };
    format!("{found}, expected {expected}")
}

/// A key whose value would be a secret that everybody can read in the repository.
pub fn secret_in_file(key: &str) -> String {
    format!("`{}` would put a secret into the repository", clean_line(key, 60))
}

/// A board that this version does not keep up to date.
pub fn unsupported_board(board: &str) -> String {
    let board = clean_line(board, 60);
    format!(
        "forge.board = \"{board}\" is not supported by this version yet; use labels, which follow every task"
    )
}

/// A branch that git would not create.
pub fn impossible_branch(why: &str) -> String {
    format!("git would refuse such a branch: {why}")
}

/// A branch below the primary branch, or the other way round: a ref cannot be a file and a directory.
pub fn branch_beside_primary(primary: &str) -> String {
    format!("git cannot hold it beside the primary branch `{primary}`")
}

/// An entry of `pass_env` that cannot be the name of a variable.
pub fn not_a_variable(name: &str) -> String {
    format!("`{}` is not the name of an environment variable", clean_line(name, 60))
}

/// A credential that would be handed to an agent or to the CI of a branch.
pub fn credential_passed_on(name: &str) -> String {
    format!("`{}` holds a credential; agents never get one, and no branch", clean_line(name, 60))
}

/// A secret of the vault that would be handed to an agent.
pub fn vault_secret_passed_on(name: &str) -> String {
    format!("`{name}` is a secret of the vault; agents never get one")
}

/// A variable that would be overwritten.
pub fn variable_of_ours(name: &str) -> String {
    format!("`{}` is set by Pointsman itself", clean_line(name, 60))
}

/// A forge on a server without its address or repository.
pub fn forge_key_missing(key: &str) -> String {
    format!("it needs the key `forge.{key}`")
}

/// Notices to a Matrix room that is not named.
pub fn matrix_key_missing(key: &str) -> String {
    format!("\"matrix\" needs the key `matrix.{key}`")
}

/// A first back-off beyond the longest.
pub fn backoff_too_long(longest: impl Display) -> String {
    format!("it is longer than restart_backoff_max ({longest})")
}

/// A longest back-off below the first.
pub fn backoff_too_short(first: impl Display) -> String {
    format!("it is shorter than restart_backoff ({first})")
}

/// A share above the one that must be larger.
pub fn above(larger: &str, value: impl Display) -> String {
    format!("it is larger than {larger} ({value}), which comes after it")
}

/// A time zone that this machine does not know.
pub fn unknown_zone(zone: &str) -> String {
    format!("this machine knows no time zone `{}`", clean_line(zone, 60))
}

/// The way to a list of all time zones.
pub const ZONES_HINT: &str = "such as Europe/Berlin; `timedatectl list-timezones` lists them";

/// A program that is not on this machine.
pub fn no_such_program(program: &str) -> String {
    format!("there is no program `{}` on this machine", clean_line(program, 100))
}

/// A session cannot have more ports than there are.
pub fn more_ports_than(range: PortRange) -> String {
    format!("tree.port_range {range} has only {} ports", range.count())
}

/// A number out of its range.
pub fn not_between(least: u32, most: u32) -> String {
    format!("it must be between {least} and {most}")
}

/// An address that the vault may not call.
pub fn host_not_listed(host: impl Display) -> String {
    format!("its host {host} is not listed in vault.hosts")
}
/// `merge.engine` and `merge.label` on a forge that cannot merge by itself.
pub const FORGE_DOES_NOT_MERGE: &str =
    "this kind of forge cannot merge by itself: `merge.engine = \"forge\"` and `merge.label` need GitHub";

/// A number of approvals is out of range.
pub fn number_of_approvals(most: u32) -> String {
    format!("a number from 1 to {most}")
}
