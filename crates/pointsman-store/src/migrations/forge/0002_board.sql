-- The board: an issue without a row stands where its state and labels put it.
CREATE TABLE board (
    issue  INTEGER PRIMARY KEY REFERENCES issues (number),
    status TEXT NOT NULL,
    agent  TEXT NOT NULL DEFAULT ''
);

-- The latest word of each check about a commit.
CREATE TABLE checks (
    sha   TEXT NOT NULL,
    name  TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('success', 'failure', 'pending')),
    at    INTEGER NOT NULL,
    PRIMARY KEY (sha, name)
);
