"""Builds the database of entities, or adds entities to it."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from cotrail.engines.knowledge.database import About, Digest, about, drafted, finish
from cotrail.engines.knowledge.source_files import ProgressCallback, ignore_progress
from cotrail.engines.knowledge.wikidata.dumps import entities
from cotrail.engines.knowledge.wikidata.entities import EntityJson, Statement, WikidataEntity, entity
from cotrail.engines.knowledge.wikidata.names import normalized_name
from cotrail.errors import InputError

# An item without `links` is known by its label alone, because others refer to it.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, label TEXT, links INTEGER, statements INTEGER);
CREATE TABLE IF NOT EXISTS properties (id INTEGER PRIMARY KEY, label TEXT);
CREATE TABLE IF NOT EXISTS names (key TEXT, name TEXT, item INTEGER);
CREATE TABLE IF NOT EXISTS statements (
    item INTEGER, property INTEGER, number INTEGER, kind TEXT, value INTEGER, text TEXT,
    point TEXT, start TEXT, end TEXT
);
"""
# Created at the end, since sorting everything once is faster than keeping indexes in order.
_INDEXES = """
CREATE INDEX IF NOT EXISTS names_by_key ON names (key);
CREATE INDEX IF NOT EXISTS statements_by_item ON statements (item);
"""
_PROPERTY = "INSERT OR IGNORE INTO properties VALUES (?, ?)"
_LABELLED = "INSERT OR IGNORE INTO items VALUES (?, ?, NULL, NULL)"
_ITEM = """
INSERT INTO items VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET label = excluded.label, links = excluded.links, statements = excluded.statements
WHERE links IS NULL
"""
_NAME = "INSERT INTO names VALUES (?, ?, ?)"
_STATEMENT = "INSERT INTO statements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def build_wikidata(paths: Sequence[Path], folder: Path, on_progress: ProgressCallback = ignore_progress) -> About:
    """Builds the folder's database from the entities of dumps and extracts; of several with one id the first counts.

    Raises InputError, which names the line, where one isn't JSON or not an entity.
    """
    with drafted(folder, _SCHEMA) as draft:
        builder = _Builder(draft)
        for place, json in entities(paths, on_progress):
            builder.add(json, place)
        if not builder.counts["items"]:
            raise InputError(
                f"no items in {', '.join(map(str, paths))}; name a dump or an extract of Wikidata's entities"
            )
        return builder.finish()


def extend_wikidata(entities: Iterable[EntityJson], referred: Iterable[EntityJson], folder: Path, place: str) -> About:
    """Adds entities to the folder's database, or starts it with them; existing entities stay as they are.

    referred: entities of which only the labels are added. place: the origin of all of them, for errors.
    """
    with drafted(folder, _SCHEMA, extends=True) as draft:
        builder = _Builder(draft, about(draft))
        for json in entities:
            builder.add(json, place)
        for json in referred:
            builder.refer(json, place)
        return builder.finish()


class _Builder:
    """Adds entities to a draft and counts them; former: the description of what the draft contains already."""

    def __init__(self, draft: sqlite3.Connection, former: About | None = None) -> None:
        self.counts = Counter({"items": 0, "properties": 0, "statements": 0} | (former.counts if former else {}))
        self._draft = draft
        self._digest = Digest(former.digest if former else "")

    def add(self, json: EntityJson, place: str) -> None:
        """Adds an item with its names and statements, or a property."""
        match entity(json, place):
            case WikidataEntity(is_property=True) as described:
                self._put(described, "properties", _PROPERTY, (described.id, described.label))
            case WikidataEntity() as described:
                row = (described.id, described.label, described.links, len(described.statements))
                if self._put(described, "items", _ITEM, row):
                    self._draft.executemany(_NAME, ((*normalized_name(name), described.id) for name in described.names))
                    self._draft.executemany(_STATEMENT, (_row(described, each) for each in described.statements))
                    self.counts["statements"] += len(described.statements)

    def refer(self, json: EntityJson, place: str) -> None:
        """Adds an entity's label only."""
        match entity(json, place):
            case WikidataEntity(is_property=True) as described:
                self._put(described, "properties", _PROPERTY, (described.id, described.label))
            case WikidataEntity() as described:
                self._put(described, "labels", _LABELLED, (described.id, described.label))

    def finish(self) -> About:
        """Creates the indexes; returns the description of the draft."""
        self._draft.executescript(_INDEXES)
        return finish(self._draft, str(self._digest), self.counts)

    def _put(self, entity: WikidataEntity, noun: str, statement: str, row: tuple[object, ...]) -> bool:
        """Adds a row; returns whether it is new."""
        is_new = self._draft.execute(statement, row).rowcount == 1
        if is_new:
            self._digest.add((noun, entity))
            self.counts[noun] += 1
        return is_new


def _row(entity: WikidataEntity, each: Statement) -> tuple[object, ...]:
    return entity.id, each.property, each.number, each.kind, each.item, each.text, each.point, each.start, each.end
