-- Times are milliseconds since the Unix epoch. JSON is text: it is never searched.

CREATE TABLE events (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    project TEXT,
    issue   INTEGER,
    session TEXT,
    data    TEXT NOT NULL
);
-- A task's history, and a project's, in order, without a sort.
CREATE INDEX events_of_task ON events (project, issue, seq);
CREATE INDEX events_of_project ON events (project, seq);

CREATE TABLE inbox (
    source_key TEXT PRIMARY KEY NOT NULL,
    seq        INTEGER NOT NULL REFERENCES events (seq),
    at         INTEGER NOT NULL
);

CREATE TABLE tasks (
    project  TEXT NOT NULL,
    issue    INTEGER NOT NULL,
    state    TEXT NOT NULL,
    since    INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (project, issue)
);
-- Start-up reads the open tasks only; closed ones pile up for ever.
CREATE INDEX tasks_open ON tasks (project, issue) WHERE state <> 'closed';

-- A pending row is an intent: after a restart each one is asked "did it happen?".
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL UNIQUE,
    project    TEXT NOT NULL,
    issue      INTEGER NOT NULL,
    effect     TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('pending', 'done', 'failed', 'superseded')),
    attempts   INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    error      TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER
);
CREATE INDEX outbox_lanes ON outbox (project, issue, id) WHERE status = 'pending';

CREATE TABLE messages (
    id              INTEGER PRIMARY KEY REFERENCES outbox (id),
    project         TEXT NOT NULL,
    issue           INTEGER NOT NULL,
    generation      INTEGER NOT NULL,
    headline        TEXT NOT NULL,
    path            TEXT,
    status          TEXT NOT NULL
        CHECK (status IN ('queued', 'sent', 'acknowledged', 'unacknowledged', 'superseded')),
    tries           INTEGER NOT NULL,
    sent_at         INTEGER,
    acknowledged_at INTEGER
);
CREATE INDEX messages_of_task ON messages (project, issue, id);
CREATE INDEX messages_waiting ON messages (sent_at) WHERE status = 'sent';

CREATE TABLE sessions (
    session      TEXT PRIMARY KEY NOT NULL,
    project      TEXT NOT NULL,
    issue        INTEGER,
    role         TEXT NOT NULL,
    generation   INTEGER NOT NULL,
    tmux_session TEXT,
    pane         TEXT,
    pid          INTEGER,
    start_time   INTEGER,
    tree         TEXT,
    created_at   INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL,
    ended_at     INTEGER,
    exit         TEXT,
    acknowledges BOOLEAN NOT NULL,
    predecessor  TEXT
);
CREATE INDEX sessions_live ON sessions (project, created_at) WHERE ended_at IS NULL;

CREATE TABLE verdicts (
    project  TEXT NOT NULL,
    object   TEXT NOT NULL,
    gate     TEXT NOT NULL,
    verdict  TEXT NOT NULL,
    log_path TEXT,
    at       INTEGER NOT NULL,
    PRIMARY KEY (project, object, gate)
);

CREATE TABLE queue (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    project        TEXT NOT NULL,
    branch         TEXT NOT NULL,
    issue          INTEGER,
    pr             INTEGER,
    identity       TEXT,
    head           TEXT NOT NULL,
    base           TEXT,
    candidate      TEXT,
    status         TEXT NOT NULL CHECK (status IN
        ('queued', 'building', 'testing', 'landed', 'conflict', 'red', 'stale', 'removed')),
    conflict_files TEXT NOT NULL,
    requested_at   INTEGER NOT NULL,
    landed_at      INTEGER,
    reason         TEXT
);
-- Asking twice for the same head is asking once.
CREATE UNIQUE INDEX queue_waiting ON queue (project, branch, head)
    WHERE status IN ('queued', 'building', 'testing');
CREATE INDEX queue_line ON queue (project, id) WHERE status IN ('queued', 'building', 'testing');

CREATE TABLE projects (
    name        TEXT PRIMARY KEY NOT NULL,
    config_path TEXT NOT NULL,
    checkout    TEXT NOT NULL,
    added_at    INTEGER NOT NULL,
    removed_at  INTEGER
);

-- Small named values; the empty project stands for the whole daemon.
CREATE TABLE cursors (
    project TEXT NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (project, name)
);
