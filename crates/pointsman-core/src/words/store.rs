//! Operations of the store that can fail, and inputs that it does not accept. An operation follows "cannot": "cannot
//! read events". A refusal follows "refused:".

// The database itself.
pub const OPEN_DATABASE: &str = "open the database";
pub const SET_UP_DATABASE: &str = "set up the database";
pub const CLOSE_NEW_DATABASE: &str = "close a new database";
pub const SWITCH_TO_WAL: &str = "switch the database to write-ahead logging";
pub const MIGRATE_DATABASE: &str = "migrate the database";
pub const COPY_DATABASE: &str = "copy the database";
pub const WRITE_BACKUP: &str = "write a backup";
pub const READ_BACKUP: &str = "read a backup";
pub const DAMAGED_BACKUP: &str = "the copy in the backup is damaged";
pub const BACKUP_TOO_LARGE: &str = "a database is too large for a backup";
pub const READ_VERSION: &str = "read the database's version";
pub const LIMIT_DATABASE: &str = "limit the database";
pub const CHECK_SNAPSHOTS: &str = "check the snapshots";

// Commits, events and the outbox.
pub const READ_INBOX: &str = "read the inbox";
pub const FIND_COMMIT: &str = "find a commit";
pub const BEGIN_COMMIT: &str = "begin a commit";
pub const FINISH_COMMIT: &str = "commit";
pub const KEY_COMMIT: &str = "key a commit";
pub const FORGET_OLD_KEYS: &str = "forget old keys";
pub const WRITE_INBOX: &str = "write the inbox";
pub const APPEND_EVENT: &str = "append an event";
pub const READ_EVENTS: &str = "read events";
pub const COUNT_EVENTS: &str = "count events";
pub const READ_LAST_NUMBERS: &str = "read last numbers";
pub const READ_OUTBOX: &str = "read the outbox";
pub const WRITE_OUTBOX: &str = "write the outbox";
pub const SETTLE_EFFECT: &str = "settle an effect";
pub const POSTPONE_EFFECT: &str = "postpone an effect";
pub const SUPERSEDE_MESSAGE: &str = "supersede a message";
pub const SUPERSEDE_EFFECT: &str = "supersede an effect";
pub const SUPERSEDE_EFFECTS: &str = "supersede effects";
pub const SUPERSEDE_MESSAGES: &str = "supersede messages";
pub const READ_DELIVERIES: &str = "read deliveries";
pub const WRITE_DELIVERY: &str = "write a delivery";
pub const SETTLE_DELIVERY: &str = "settle a delivery";
pub const READ_CURSOR: &str = "read a cursor";
pub const SET_CURSOR: &str = "set a cursor";

// Tasks, runs, roles and the vault.
pub const READ_TASKS: &str = "read tasks";
pub const WRITE_TASK: &str = "write a task";
pub const READ_RUNS: &str = "read runs";
pub const WRITE_RUN: &str = "write a run";
pub const READ_MEMORY: &str = "read a memory";
pub const WRITE_MEMORY: &str = "write a memory";
pub const READ_VAULT: &str = "read the vault";
pub const WRITE_VAULT: &str = "write the vault";
pub const READ_QUESTIONS: &str = "read questions";
pub const WRITE_QUESTION: &str = "write a question";
pub const READ_PROJECTS: &str = "read the projects";
pub const ADD_PROJECT: &str = "add a project";
pub const REMOVE_PROJECT: &str = "remove a project";

// Sessions and what they cost.
pub const READ_SESSIONS: &str = "read sessions";
pub const TOUCH_SESSION: &str = "touch a session";
pub const RECORD_STALE_SESSION: &str = "record a stale session";
pub const RECORD_MEASUREMENT: &str = "record a measurement";
pub const WRITE_SESSION: &str = "write a session";
pub const READ_AGENTS: &str = "read agents";
pub const READ_SPENDING: &str = "read what was spent";
pub const READ_SESSION_TIMES: &str = "read how long sessions ran";
pub const RECORD_SPENDING: &str = "record what was spent";
pub const READ_WORK_STATE: &str = "read a work state";
pub const WRITE_WORK_STATE: &str = "write a work state";
pub const READ_CHECKPOINTS: &str = "read checkpoints";
pub const WRITE_CHECKPOINT: &str = "write a checkpoint";
pub const FORGET_CHECKPOINT: &str = "forget a checkpoint";

// Messages, notices and replies.
pub const READ_MESSAGES: &str = "read messages";
pub const RECORD_SENT_MESSAGE: &str = "record a sent message";
pub const HOLD_MESSAGE_BACK: &str = "hold back a message";
pub const ACKNOWLEDGE_MESSAGE: &str = "acknowledge a message";
pub const GIVE_UP_MESSAGE: &str = "give up a message";
pub const WRITE_MESSAGE: &str = "write a message";
pub const READ_NOTICES: &str = "read notices";
pub const WRITE_NOTICE: &str = "write a notice";
pub const COUNT_NOTICE: &str = "count a notice";
pub const READ_REPLIES: &str = "read replies";
pub const WRITE_REPLY: &str = "write a reply";
pub const TAKE_REPLY: &str = "take a reply";
pub const GIVE_REPLIES_BACK: &str = "give back replies";
pub const READ_THREADS: &str = "read threads";
pub const WRITE_THREAD: &str = "write a thread";

// The merge queue.
pub const READ_MERGE_QUEUE: &str = "read the merge queue";
pub const ENQUEUE_BRANCH: &str = "enqueue a branch";
pub const UPDATE_MERGE_QUEUE: &str = "update the merge queue";
pub const READ_QUEUE_STATE: &str = "read a merge queue";
pub const PAUSE_QUEUE: &str = "stop a merge queue";
pub const RESUME_QUEUE: &str = "resume a merge queue";
pub const WRITE_AUDIT: &str = "write an audit";
pub const READ_VERDICT: &str = "read a verdict";
pub const READ_GATE_TIMES: &str = "read how long a gate takes";
pub const REMEMBER_VERDICT: &str = "remember a verdict";

// The embedded forge.
pub const ASSIGN_NUMBER: &str = "assign a number";
pub const FIND_NUMBER: &str = "find a number";
pub const CREATE_ISSUE: &str = "create an issue";
pub const READ_ISSUE: &str = "read an issue";
pub const READ_ISSUES: &str = "read issues";
pub const SET_LABELS: &str = "set labels";
pub const WRITE_COMMENT: &str = "comment";
pub const READ_COMMENTS: &str = "read comments";
pub const CHANGE_ISSUE: &str = "change an issue";
pub const OPEN_PULL_REQUEST: &str = "open a pull request";
pub const REVIEW_PULL_REQUEST: &str = "review a pull request";
pub const READ_REVIEWS: &str = "read reviews";
pub const DISMISS_REVIEW: &str = "dismiss a review";
pub const CLOSE_PULL_REQUEST: &str = "close a pull request";
pub const MARK_AS_MERGED: &str = "mark a pull request as merged";
pub const READ_PULL_REQUESTS: &str = "read pull requests";
pub const READ_BOARD: &str = "read the board";
pub const CHANGE_BOARD: &str = "change the board";
pub const READ_CHECKS: &str = "read checks";
pub const WRITE_CHECK: &str = "write a check";

// Databases that are not used.
pub const TOO_MANY_DRAFTS: &str = "too many unfinished databases beside this one";
pub const NO_WAL: &str = "this file system does not support a database with write-ahead logging";
pub const NEGATIVE_VERSION: &str = "a database with a negative version";

// Values and changes that are not written.
pub const NUMBER_TOO_LARGE: &str = "an oversized number";
pub const ISSUE_TOO_LARGE: &str = "an issue number that is too large";
pub const UNWRITABLE_VALUE: &str = "an unwritable value";
pub const UNWRITABLE_WORD: &str = "an unwritable word";
pub const UNWRITABLE_MEMORY: &str = "an unwritable memory";
pub const NOT_A_DAY: &str = "a day that is not written YYYY-MM-DD";
pub const EFFECTS_WITHOUT_OWNER: &str = "a change with effects that names no workflow";
pub const UNLOGGED_CHANGE: &str = "an unlogged change";
pub const NO_PROJECT: &str = "a change that names no project";
pub const ANOTHER_TASK: &str = "a change about one task that carries another";
pub const ANOTHER_ACTION: &str = "another action under the name of one in the vault";
pub const ANOTHER_CHECKPOINT: &str = "a checkpoint under another's number";
pub const QUESTION_WITHOUT_NUMBER: &str = "a question without a number";
pub const ASKED_ALREADY: &str = "a second open question of the same kind by the same workflow";
pub const BRANCH_WAITS: &str = "a waiting branch";

/// Things of the embedded forge that do not exist, after "there is no".
pub const NUMBERED: &str = "issue or pull request";

/// A value that is not written as one bare text.
pub fn not_a_word(value: &serde_json::Value) -> String {
    format!("`{value}` is not a word")
}

/// A lane of the outbox that names no workflow of this program.
pub fn not_a_workflow(lane: &str) -> String {
    format!("{lane:?} names no workflow")
}
