-- WAL lets servers read while one of them writes.
PRAGMA journal_mode = WAL;

CREATE TABLE items (
	id    TEXT PRIMARY KEY,
	stock INTEGER NOT NULL,
	fence INTEGER NOT NULL DEFAULT 0 -- the largest token that has written here
);

CREATE TABLE orders (
	item   TEXT NOT NULL REFERENCES items (id),
	buyer  TEXT NOT NULL,
	server TEXT NOT NULL,
	fence  INTEGER NOT NULL
);
