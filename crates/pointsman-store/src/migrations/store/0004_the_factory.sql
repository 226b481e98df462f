-- The vault: dangerous actions and what became of them. The entry is the whole of it; what is beside it is searched.

CREATE TABLE vault (
    project      TEXT NOT NULL,
    id           TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN
        ('pending', 'approved', 'firing', 'fired', 'failed', 'rejected', 'uncertain')),
    -- Whether something is still to be done about it, if only to tell people.
    open         BOOLEAN NOT NULL,
    submitted_at INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    entry        TEXT NOT NULL,
    PRIMARY KEY (project, id)
);
-- What is over piles up for ever; a daemon reads the rest again and again.
CREATE INDEX vault_open ON vault (project, submitted_at) WHERE open;
CREATE INDEX vault_of_project ON vault (project, submitted_at);

-- Runs of formulas, numbered in each project.
CREATE TABLE runs (
    project    TEXT NOT NULL,
    id         INTEGER NOT NULL,
    formula    TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('starting', 'running', 'done', 'failed', 'stopped')),
    -- Whether something is still to be done about it, if only to put its session away.
    open       BOOLEAN NOT NULL,
    started_at INTEGER NOT NULL,
    run        TEXT NOT NULL,
    PRIMARY KEY (project, id)
);
CREATE INDEX runs_open ON runs (project, id) WHERE open;
-- The last run of each formula is what a schedule asks for.
CREATE INDEX runs_of_formula ON runs (project, formula, id);
