"""Fetches single entities from a server with Wikidata's API: only when a user runs the command, never during a run."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.common.server_addresses import http_options, read_address
from cotrail.engines.knowledge.database import About
from cotrail.engines.knowledge.wikidata.building import extend_wikidata
from cotrail.engines.knowledge.wikidata.entities import LANGUAGES, EntityJson, entity
from cotrail.errors import InputError, UnavailableError

MOST_ENTITIES = 50
"""The most entities in one response of the API."""

TIMEOUT_SECONDS = 60.0

SITE = "enwiki"
"""The Wikipedia whose page titles name entities."""

_ALL_PROPS = "labels|aliases|claims|sitelinks"
_PARAMETERS = {"action": "wbgetentities", "format": "json", "languages": "|".join(LANGUAGES)}
_ID = re.compile(r"[QP]\d+")


def fetch_wikidata(names: Sequence[str], url: str, folder: Path) -> About:
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
        **http_options(),
        timeout=TIMEOUT_SECONDS,
        headers={"User-Agent": "cotrail"},
        follow_redirects=True,
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
        """The entities with these ids or titles."""
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
    """The ids of all entities that the dated statements mention."""
    items = filter(None, (entity(json, url) for json in entities))
    statements = [statement for item in items for statement in item.statements]
    properties = {f"P{statement.property}" for statement in statements}
    return sorted(properties | {f"Q{statement.item}" for statement in statements if statement.item is not None})
