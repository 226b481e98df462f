-- The merge queue: who waits with what, what was heard of the gate, and whether the line is at work.

ALTER TABLE queue ADD COLUMN worktree TEXT;
ALTER TABLE queue ADD COLUMN bead_id TEXT;
ALTER TABLE queue ADD COLUMN node_id TEXT;
ALTER TABLE queue ADD COLUMN conflicts_with TEXT;
ALTER TABLE queue ADD COLUMN tested_since INTEGER;

ALTER TABLE verdicts ADD COLUMN took_ms INTEGER;
CREATE INDEX verdicts_recent ON verdicts (project, gate, at);

-- One row per project whose line was ever stopped or audited.
CREATE TABLE lines (
    project        TEXT PRIMARY KEY NOT NULL,
    stopped_at     INTEGER,
    stopped_by     TEXT CHECK (stopped_by IN ('person', 'audit')),
    stopped_reason TEXT,
    audited        TEXT,
    direct_merges  INTEGER NOT NULL DEFAULT 0,
    person_merges  INTEGER NOT NULL DEFAULT 0
);
