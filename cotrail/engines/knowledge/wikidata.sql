-- An item without `links` is known by its label alone, because others refer to it.
CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, label TEXT, links INTEGER, statements INTEGER);
CREATE TABLE IF NOT EXISTS properties (id INTEGER PRIMARY KEY, label TEXT);
CREATE TABLE IF NOT EXISTS names (key TEXT, name TEXT, item INTEGER);
CREATE TABLE IF NOT EXISTS statements (
    item INTEGER, property INTEGER, number INTEGER, kind TEXT, value INTEGER, text TEXT,
    point TEXT, start TEXT, end TEXT
);
