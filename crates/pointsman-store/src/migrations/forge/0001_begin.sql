-- Issues and pull requests share one sequence of numbers.
CREATE TABLE numbers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind   TEXT NOT NULL CHECK (kind IN ('issue', 'pull_request'))
);

CREATE TABLE issues (
    number     INTEGER PRIMARY KEY REFERENCES numbers (number),
    title      TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    assignee   TEXT,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    closed_at  INTEGER
);
CREATE INDEX issues_open ON issues (number) WHERE state = 'open';

CREATE TABLE labels (
    issue INTEGER NOT NULL REFERENCES issues (number),
    label TEXT NOT NULL,
    PRIMARY KEY (issue, label)
);

CREATE TABLE comments (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL REFERENCES numbers (number),
    author TEXT NOT NULL,
    body   TEXT NOT NULL,
    at     INTEGER NOT NULL
);
CREATE INDEX comments_of_number ON comments (number, id);

CREATE TABLE pull_requests (
    number     INTEGER PRIMARY KEY REFERENCES numbers (number),
    head       TEXT NOT NULL,
    base       TEXT NOT NULL,
    title      TEXT NOT NULL,
    body       TEXT NOT NULL,
    author     TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    merged     BOOLEAN NOT NULL,
    merge_sha  TEXT,
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX pull_requests_open ON pull_requests (head, base) WHERE state = 'open';
CREATE INDEX pull_requests_of_branch ON pull_requests (head, base, number);

CREATE TABLE reviews (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    pr        INTEGER NOT NULL REFERENCES pull_requests (number),
    author    TEXT NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('approve', 'request_changes', 'discuss')),
    body      TEXT NOT NULL,
    sha       TEXT NOT NULL,
    at        INTEGER NOT NULL,
    dismissed BOOLEAN NOT NULL
);
CREATE INDEX reviews_of_pr ON reviews (pr, id);
