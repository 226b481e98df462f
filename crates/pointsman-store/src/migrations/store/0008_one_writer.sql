-- One writer: commits have keys, events a number in their project, snapshots a version.

-- The last commits. Whoever cannot tell whether one happened looks its key up; older ones are known to have happened.
CREATE TABLE commits (
    number INTEGER PRIMARY KEY NOT NULL,
    key    TEXT NOT NULL UNIQUE,
    at     INTEGER NOT NULL
);

-- The number of an event among those of its project, without gaps: one that follows several projects keeps one position
-- for each. Events of no project are counted together.
ALTER TABLE events ADD COLUMN project_seq INTEGER NOT NULL DEFAULT 0;
UPDATE events SET project_seq = numbered.n
    FROM (SELECT seq, row_number() OVER (PARTITION BY project ORDER BY seq) AS n FROM events) AS numbered
    WHERE numbered.seq = events.seq;
CREATE UNIQUE INDEX events_in_project ON events (project, project_seq);

-- The form that a snapshot has. What 0.1.0 wrote is the first.
ALTER TABLE tasks ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE vault ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

-- What roles and schedules remember of a project, whole. Before, it was among the cursors.
CREATE TABLE memories (
    project  TEXT NOT NULL,
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (project, name)
);
INSERT INTO memories (project, name, version, snapshot)
    SELECT project, name, 1, value FROM cursors
    WHERE project <> '' AND (name IN ('gardener', 'planner', 'predictor', 'supervisor', 'results')
        OR name LIKE 'hand-in.%' OR name LIKE 'value.%' OR name LIKE 'timetable.%');
DELETE FROM cursors
    WHERE project <> '' AND (name IN ('gardener', 'planner', 'predictor', 'supervisor', 'results')
        OR name LIKE 'hand-in.%' OR name LIKE 'value.%' OR name LIKE 'timetable.%');

-- A server that refuses to take what would land pauses the merge queue too.
CREATE TABLE lines_by_more (
    project        TEXT PRIMARY KEY NOT NULL,
    stopped_at     INTEGER,
    stopped_by     TEXT CHECK (stopped_by IN ('person', 'audit', 'refusal')),
    stopped_reason TEXT,
    audited        TEXT,
    direct_merges  INTEGER NOT NULL DEFAULT 0,
    person_merges  INTEGER NOT NULL DEFAULT 0
);
INSERT INTO lines_by_more
    SELECT project, stopped_at, stopped_by, stopped_reason, audited, direct_merges, person_merges FROM lines;
DROP TABLE lines;
ALTER TABLE lines_by_more RENAME TO lines;
