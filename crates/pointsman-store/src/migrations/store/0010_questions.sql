-- Questions to people, of all projects. Their owners keep them in their snapshots; this is the list of all.

CREATE TABLE questions (
    id       INTEGER PRIMARY KEY NOT NULL,
    project  TEXT NOT NULL,
    -- The workflow that asks: task/3, run/7, vault/deploy-17.
    owner    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    issue    INTEGER,
    open     BOOLEAN NOT NULL,
    asked_at INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    question TEXT NOT NULL
);
CREATE INDEX questions_open ON questions (id) WHERE open;
CREATE INDEX questions_of_owner ON questions (project, owner, id);
CREATE INDEX questions_about ON questions (project, issue, id) WHERE open;
-- A workflow asks one question of a kind at a time.
CREATE UNIQUE INDEX questions_of_kind ON questions (project, owner, kind) WHERE open;
