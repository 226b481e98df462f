-- Notices to people, who tells them where, and what people say to that.

CREATE TABLE notices (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    key     TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    topic   TEXT NOT NULL,
    -- A fingerprint: the same words about the same thing are the same.
    words   TEXT NOT NULL,
    -- How often the same was said, of which only the first time was told.
    times   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    posting TEXT NOT NULL
);
CREATE INDEX notices_of_words ON notices (project, words, id);
CREATE INDEX notices_of_topic ON notices (project, topic, id);

-- A notice under way, once for each notifier.
CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    notice     INTEGER NOT NULL REFERENCES notices (id),
    project    TEXT NOT NULL,
    notifier   TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('pending', 'sent', 'dropped')),
    urgent     BOOLEAN NOT NULL,
    not_before INTEGER NOT NULL,
    settled_at INTEGER,
    -- What the other side calls it.
    sent_as    TEXT,
    error      TEXT
);
CREATE INDEX deliveries_pending ON deliveries (project, notifier, id) WHERE status = 'pending';
CREATE INDEX deliveries_of_notice ON deliveries (notice);
CREATE INDEX deliveries_sent_as ON deliveries (project, sent_as) WHERE sent_as IS NOT NULL;

-- Threads of chat rooms. What the first message shows is kept up to date until it is over.
CREATE TABLE threads (
    project   TEXT NOT NULL,
    place     TEXT NOT NULL,
    topic     TEXT NOT NULL,
    root      TEXT NOT NULL,
    first     TEXT NOT NULL,
    shown     TEXT NOT NULL,
    edits     INTEGER NOT NULL,
    edited_at INTEGER NOT NULL,
    open      BOOLEAN NOT NULL,
    PRIMARY KEY (project, place, topic)
);
CREATE INDEX threads_of_root ON threads (project, place, root);
CREATE INDEX threads_open ON threads (project, place, topic) WHERE open;

-- What people said to agents that are not running; taken once.
CREATE TABLE replies (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    project  TEXT NOT NULL,
    topic    TEXT NOT NULL,
    said_by  TEXT NOT NULL,
    words    TEXT NOT NULL,
    reply    TEXT NOT NULL,
    at       INTEGER NOT NULL,
    taken_at INTEGER
);
CREATE INDEX replies_waiting ON replies (project, topic, id) WHERE taken_at IS NULL;
