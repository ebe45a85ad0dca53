-- Names stand in rows as small integers.
CREATE TABLE bus (
    bus  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- A lane is the queue of one target.
CREATE TABLE lane (
    lane     INTEGER PRIMARY KEY,
    target   TEXT NOT NULL UNIQUE,
    paused   INTEGER NOT NULL DEFAULT 0,
    disabled TEXT
);

-- The log of accepted events; written once, never per target.
CREATE TABLE event (
    seq         INTEGER PRIMARY KEY,
    bus         INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    attributes  TEXT NOT NULL,
    data_kind   INTEGER NOT NULL,
    data        BLOB,
    blob_key    TEXT,
    data_bytes  INTEGER NOT NULL,
    content     BLOB NOT NULL,
    facts       TEXT NOT NULL,
    trace       TEXT
);

-- Digest of bus, source and id: what makes a second publish a duplicate.
CREATE TABLE identity (
    digest BLOB PRIMARY KEY,
    seq    INTEGER NOT NULL
) WITHOUT ROWID;

-- Deliveries due now. Rows are inserted at commit and deleted at settlement, never updated.
CREATE TABLE ready (
    lane INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (lane, seq)
) WITHOUT ROWID;

-- Deliveries due later (retries, releases), kept apart so that they never slow the ready ones.
-- `since` is when their age begins; 0 stands for the event's acceptance.
CREATE TABLE delayed (
    lane     INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    receives INTEGER NOT NULL,
    PRIMARY KEY (lane, due, seq)
) WITHOUT ROWID;

-- Deliveries held by pull consumers.
CREATE TABLE lease (
    lane     INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    token    BLOB NOT NULL,
    until    INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    receives INTEGER NOT NULL,
    PRIMARY KEY (lane, seq)
) WITHOUT ROWID;
CREATE INDEX lease_until ON lease (lane, until);

-- Failed attempts of deliveries that are still alive.
CREATE TABLE attempt (
    lane    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    record  TEXT NOT NULL,
    PRIMARY KEY (lane, seq, number)
) WITHOUT ROWID;

-- Dead letters: the whole event by reference, every attempt, the reason.
CREATE TABLE dead (
    dead     INTEGER PRIMARY KEY AUTOINCREMENT,
    lane     INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    died_at  INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    detail   TEXT,
    failures INTEGER NOT NULL,
    receives INTEGER NOT NULL,
    attempts TEXT NOT NULL
);
CREATE INDEX dead_lane ON dead (lane, reason);
CREATE INDEX dead_seq ON dead (seq);

-- Events that matched no rule, grouped.
CREATE TABLE unmatched (
    bus        INTEGER NOT NULL,
    source     TEXT NOT NULL,
    type       TEXT NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    sample     INTEGER NOT NULL,
    PRIMARY KEY (bus, source, type)
) WITHOUT ROWID;

-- Rules, targets, schemas, policies and buses as text; the catalog gives them meaning.
CREATE TABLE document (
    kind       TEXT NOT NULL,
    bus        TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, bus, name, version)
) WITHOUT ROWID;

-- API keys; the secret itself is never stored.
CREATE TABLE api_key (
    name       TEXT PRIMARY KEY,
    digest     BLOB NOT NULL,
    scopes     TEXT NOT NULL,
    bus        TEXT,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Facts about this database, such as the key that signs blob addresses.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
