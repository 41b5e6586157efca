"""Builds the database of entities, or adds entities to it.

Dumps and extracts of entities.

A dump is a list with one entity a line, compressed or not; lines of entities without the list work too. An extract is
one object `{"entities": {...}}`, as Special:EntityData and the API return it.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import httpx2
from msgspec import Struct, field

from cotrail.common.json_files import decode
from cotrail.common.server_addresses import http_options, read_address
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, shown_size
from cotrail.engines.knowledge import database
from cotrail.engines.knowledge.wikidata.entities import (
    LANGUAGES,
    EntityJson,
    Statement,
    WikidataEntity,
    entity,
    normalized_name,
)
from cotrail.errors import InputError, UnavailableError


class _Record(EntityJson, frozen=True):
    """An entity, or an extract with several."""

    entities: dict[str, EntityJson] | list[None] = field(default_factory=dict)


def entities(
    paths: Sequence[Path], on_progress: database.ProgressCallback = database.ignore_progress
) -> Iterator[tuple[str, EntityJson]]:
    """The files' entities, each with its place, e.g. `dump.json.gz, line 3`. Dumps are streamed.

    Raises InputError where a file can't be read or is truncated, or a line isn't JSON or not an entity.
    """
    for path, lines in database.opened_files(paths, on_progress):
        start = next(lines, (1, b""))
        if start[1].strip() == b"{":  # an extract over several lines
            yield from decoded(b"".join(_bounded(path, chain([start], lines))), str(path))
        else:
            yield from _entities(path, chain([start], lines))


def _bounded(path: Path, lines: database.NumberedLines) -> Iterator[bytes]:
    """The lines of an extract, which is held in memory as a whole, up to a limit."""
    room = MAX_SMALL_FILE_BYTES
    for number, line in lines:
        room -= len(line)
        if room < 0:
            raise InputError(
                f"{path}, line {number}: an extract of more than {shown_size(MAX_SMALL_FILE_BYTES)}; give a dump"
            )
        yield line


def decoded(raw: bytes, place: str) -> Iterator[tuple[str, EntityJson]]:
    """The entity, or those of an extract, each with the place."""
    record = decode(raw, _Record, place, InputError)
    if isinstance(record.entities, dict) and record.entities:
        yield from ((place, each) for each in record.entities.values())
    else:
        yield place, record


def _entities(path: Path, lines: database.NumberedLines) -> Iterator[tuple[str, EntityJson]]:
    is_open = False
    for number, line in lines:
        stripped = line.strip()
        if stripped in {b"[", b"]"}:
            is_open = stripped == b"["
        elif stripped:
            yield from decoded(stripped.removesuffix(b","), f"{path}, line {number}")
    # A download that broke off between two lines can be read without any other error.
    if is_open:
        raise InputError(f"{path} breaks off: its list doesn't end; get the file again")


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


def build_wikidata(
    paths: Sequence[Path], folder: Path, on_progress: database.ProgressCallback = database.ignore_progress
) -> database.About:
    """Builds the folder's database from the entities of dumps and extracts; of several with one id the first counts.

    Raises InputError, which names the line, where one isn't JSON or not an entity.
    """
    with database.drafted(folder, "wikidata") as draft:
        builder = _Builder(draft)
        for place, json in entities(paths, on_progress):
            builder.add(json, place)
        if not builder.counts["items"]:
            raise InputError(
                f"no items in {', '.join(map(str, paths))}; name a dump or an extract of Wikidata's entities"
            )
        return builder.finish()


def extend_wikidata(
    entities: Iterable[EntityJson], referred: Iterable[EntityJson], folder: Path, place: str
) -> database.About:
    """Adds entities to the folder's database, or starts it with them; existing entities stay as they are.

    referred: entities of which only the labels are added. place: the origin of all of them, for errors.
    """
    with database.drafted(folder, "wikidata", extends=True) as draft:
        builder = _Builder(draft, database.about(draft))
        for json in entities:
            builder.add(json, place)
        for json in referred:
            builder.refer(json, place)
        return builder.finish()


class _Builder:
    """Adds entities to a draft and counts them; former: the description of what the draft contains already."""

    def __init__(self, draft: sqlite3.Connection, former: database.About | None = None) -> None:
        self.counts = Counter({"items": 0, "properties": 0, "statements": 0} | (former.counts if former else {}))
        self._draft = draft
        self._digest = database.Digest(former.digest if former else "")

    def add(self, json: EntityJson, place: str) -> None:
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
        match entity(json, place):
            case WikidataEntity(is_property=True) as described:
                self._put(described, "properties", _PROPERTY, (described.id, described.label))
            case WikidataEntity() as described:
                self._put(described, "labels", _LABELLED, (described.id, described.label))

    def finish(self) -> database.About:
        """Creates the indexes; returns the description of the draft."""
        self._draft.executescript(_INDEXES)
        return database.finish(self._draft, str(self._digest), self.counts)

    def _put(self, entity: WikidataEntity, noun: str, statement: str, row: tuple[object, ...]) -> bool:
        is_new = self._draft.execute(statement, row).rowcount == 1
        if is_new:
            self._digest.add((noun, entity))
            self.counts[noun] += 1
        return is_new


def _row(entity: WikidataEntity, each: Statement) -> tuple[object, ...]:
    return entity.id, each.property, each.number, each.kind, each.item, each.text, each.point, each.start, each.end


# Fetches single entities from a server with Wikidata's API: only when a user runs the command, never during a run.

MOST_ENTITIES = 50
"""The most entities in one response of the API."""

TIMEOUT_SECONDS = 60.0

SITE = "enwiki"
"""The Wikipedia whose page titles name entities."""

_ALL_PROPS = "labels|aliases|claims|sitelinks"
_PARAMETERS = {"action": "wbgetentities", "format": "json", "languages": "|".join(LANGUAGES)}
_ID = re.compile(r"[QP]\d+")


def fetch_wikidata(names: Sequence[str], url: str, folder: Path) -> database.About:
    """Adds entities to the folder's database, with the labels of all entities that their dated statements mention.

    names: ids (`Q868`) or titles of pages of English Wikipedia (`Aristotle`). url: an API's, such as
        `https://www.wikidata.org/w/api.php`. Raises InputError, which lists unknown names, and UnavailableError where
        the server returned nothing; either leaves the database as it is.
    """
    _check(url)
    ids = [name for name in names if _ID.fullmatch(name)]
    titles = [name for name in names if not _ID.fullmatch(name)]
    # Wikimedia rejects requests without a user agent.
    with httpx2.Client(
        **http_options(), timeout=TIMEOUT_SECONDS, headers={"User-Agent": "cotrail"}, follow_redirects=True
    ) as client:
        server = _Server(client, url)
        entities = [*server.entities("ids", ids, _ALL_PROPS), *server.entities("titles", titles, _ALL_PROPS)]
        referred = list(server.entities("ids", _referred(entities, url), "labels"))
    return extend_wikidata(entities, referred, folder, url)


def _check(url: str) -> None:
    """Checks the URL, which must not hold a password: command lines can be read by all users of a machine."""
    try:
        address = read_address(url, ("http", "https"))
    except ValueError as error:
        raise InputError(f"--url can't be used: {error}") from None
    if address.user is not None or address.query:
        raise InputError("--url holds more than an address; it reads like https://www.wikidata.org/w/api.php")


class _Error(Struct, frozen=True):
    code: str
    info: str


class _Answer(Struct, frozen=True):
    entities: dict[str, EntityJson] = {}
    error: _Error | None = None


class _Server:
    def __init__(self, client: httpx2.Client, url: str) -> None:
        self._client = client
        self._url = url

    def entities(self, key: str, values: Sequence[str], props: str) -> Iterator[EntityJson]:
        for start in range(0, len(values), MOST_ENTITIES):
            parameters = {key: "|".join(values[start : start + MOST_ENTITIES]), "props": props} | _PARAMETERS
            entities = self._answer(parameters | ({"sites": SITE} if key == "titles" else {}))
            if missing := [json.id or json.title for json in entities if json.missing is not None]:
                raise InputError(f"{self._url} has no {', '.join(missing)}; check the names")
            yield from entities

    def _answer(self, parameters: dict[str, str]) -> list[EntityJson]:
        try:
            response = self._client.get(self._url, params=parameters).raise_for_status()
            answer = decode(response.content, _Answer, self._url, InputError)
        except (httpx2.HTTPError, httpx2.InvalidURL, InputError) as error:
            raise UnavailableError(f"{self._url} returns no entities ({error}); check that an API is there") from error
        if answer.error is not None:
            raise InputError(f"{self._url} refuses: {answer.error.info} ({answer.error.code}); check the names")
        if not answer.entities:
            raise UnavailableError(f"{self._url} returns no entities; check that an API of Wikidata's is there")
        return list(answer.entities.values())


def _referred(entities: Sequence[EntityJson], url: str) -> list[str]:
    items = filter(None, (entity(json, url) for json in entities))
    statements = [statement for item in items for statement in item.statements]
    properties = {f"P{statement.property}" for statement in statements}
    return sorted(properties | {f"Q{statement.item}" for statement in statements if statement.item is not None})
