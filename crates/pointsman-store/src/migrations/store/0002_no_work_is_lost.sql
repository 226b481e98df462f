-- The identity registry. An identity is the same across generations, a session is one of them.
ALTER TABLE sessions ADD COLUMN identity TEXT NOT NULL DEFAULT '';
-- Empty: written before hosts were recorded.
ALTER TABLE sessions ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN model TEXT;
ALTER TABLE sessions ADD COLUMN bead_id TEXT;
ALTER TABLE sessions ADD COLUMN node_id TEXT;
ALTER TABLE sessions ADD COLUMN hook_path TEXT;
ALTER TABLE sessions ADD COLUMN context TEXT;
ALTER TABLE sessions ADD COLUMN times_stale INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN micro_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN newest BOOLEAN NOT NULL DEFAULT FALSE;

UPDATE sessions SET identity =
    CASE WHEN session LIKE '%.' || generation
        THEN substr(session, 1, length(session) - length('.' || generation))
        ELSE session
    END;
CREATE INDEX sessions_of_identity ON sessions (project, identity, generation);
UPDATE sessions SET newest = TRUE WHERE NOT EXISTS (
    SELECT 1 FROM sessions AS later
    WHERE later.project = sessions.project AND later.identity = sessions.identity
        AND later.generation > sessions.generation
);
-- "Who is there" reads one row of each identity, however many generations it had.
CREATE UNIQUE INDEX sessions_newest ON sessions (project, identity) WHERE newest;

-- What a task or a day has cost is counted from its sessions: how long they ran, and which followed a death.
CREATE INDEX sessions_of_task ON sessions (project, issue);
CREATE INDEX sessions_of_time ON sessions (project, ended_at);

-- What the agent last claimed, beside the snapshot that says so too: lists need not parse it.
ALTER TABLE tasks ADD COLUMN phase TEXT;
UPDATE tasks SET phase = json_extract(snapshot, '$.phase');

CREATE TABLE work_states (
    identity   TEXT PRIMARY KEY NOT NULL,
    project    TEXT NOT NULL,
    issue      INTEGER,
    session    TEXT,
    -- The phase of the work, beside the state that says so too: lists need not parse it.
    phase      TEXT NOT NULL,
    state      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

-- Signals are few among many events; whoever waits for them reads only them, in order.
CREATE INDEX events_of_kind ON events (kind, seq);

-- A session reports what it has spent since its start: the highest report of each day is kept, so
-- that a report that comes twice counts once. A day's share is what is above the days before it.
CREATE TABLE spending (
    session   TEXT NOT NULL,
    day       TEXT NOT NULL,
    project   TEXT NOT NULL,
    issue     INTEGER,
    tokens    INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    turns     INTEGER NOT NULL,
    PRIMARY KEY (session, day)
);
CREATE INDEX spending_of_task ON spending (project, issue);
CREATE INDEX spending_of_day ON spending (day, project);

CREATE TABLE checkpoints (
    project TEXT NOT NULL,
    issue   INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    session TEXT,
    ref     TEXT NOT NULL,
    sha     TEXT NOT NULL,
    tree    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    why     TEXT NOT NULL,
    files   INTEGER NOT NULL,
    PRIMARY KEY (project, issue, n)
);

ALTER TABLE queue ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN style TEXT;
