"""Entities in Wikidata's JSON, as in dumps, Special:EntityData and the API.

Times of Wikidata in words, as precise as years (as in the authors' code).
"""

from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from cotrail.engines.knowledge.words import words
from cotrail.errors import InputError

# Normalization of entities' names for looking them up.


def normalized_name(name: str) -> tuple[str, str]:
    """A name as it is looked up, in lower case and without punctuation, and the same in its own case."""
    spelling = " ".join(words(name))
    return spelling.casefold(), spelling


MILLENNIUM, CENTURY, DECADE, YEAR = 6, 7, 8, 9
"""Wikidata's numbers of precision; higher ones are more precise, lower ones say next to nothing."""


class Time(Struct, frozen=True):
    """A time of Wikidata: `+1980-05-26T00:00:00Z`, `-0322-...` for 322 BC."""

    time: str
    precision: int


def in_words(value: Time) -> str | None:
    """E.g. `1980`, `322 BC`, `the 1980s`, `the 4th century BC`; None where it is less precise than a millennium."""
    year = int(value.time[1:].split("-")[0])
    era = " BC" if value.time.startswith("-") else ""
    if value.precision >= YEAR:
        return f"{year}{era}"
    match value.precision:
        case 8:
            return f"the {year - year % 10}s{era}"
        case 7:
            # Rounded up: 1901 and 2000 are both in the 20th century.
            return f"the {_ordinal(-(-year // 100))} century{era}"
        case 6:
            return f"the {_ordinal(-(-year // 1000))} millennium{era}"
    return None


def _ordinal(number: int) -> str:
    teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


T = TypeVar("T")

LANGUAGES = ("en", "mul")
"""Languages of labels and aliases; `mul` has what is the same in most languages, such as people's names."""

MAX_NUMBER = 2**63 - 1
"""The greatest number of an entity that the database can hold."""

POINT, START, END = "P585", "P580", "P582"
"""Qualifiers that date a statement: point in time, start time, end time."""

INSTANCE_OF = "P31"

NOT_ENTITIES = frozenset({"Q4167410", "Q4167836", "Q11266439", "Q13406463", "Q22808320", "Q17362920"})
"""Classes of Wikipedia pages that are nothing in the world: disambiguations, categories, templates, lists,
duplicates."""

ValueKind = Literal["item", "time", "text", "quantity"]
"""The kind of a statement's value. Other data types, such as identifiers and coordinates, say nothing in a sentence."""


class Statement(Struct, frozen=True, kw_only=True):
    """A dated statement of an item.

    number: its place among the item's statements of that property, from 0.
    item: the number of the item that is the value, or of a quantity's unit; text: any other value.
    point, start, end: when it holds, in words.
    """

    property: int
    number: int
    kind: ValueKind
    item: int | None = None
    text: str = ""
    point: str | None = None
    start: str | None = None
    end: str | None = None


class WikidataEntity(Struct, frozen=True, kw_only=True):
    """An item or a property. Properties have labels only.

    names: label and aliases, where a sentence can name the item. links: the number of wikis with a page about it.
    """

    id: int
    is_property: bool
    label: str | None
    names: tuple[str, ...] = ()
    links: int = 0
    statements: tuple[Statement, ...] = ()


class _Text(Struct, frozen=True):
    value: str


class _DataValue(Struct, frozen=True):
    type: str
    value: msgspec.Raw


class _Snak(Struct, frozen=True):
    snaktype: str
    datavalue: _DataValue | None = None
    datatype: str = ""


class _Claim(Struct, frozen=True):
    mainsnak: _Snak
    rank: str = "normal"
    qualifiers: dict[str, list[_Snak]] | list[None] = []


class _Id(Struct, frozen=True):
    id: str


class _Amount(Struct, frozen=True):
    amount: str
    unit: str


class _Monolingual(Struct, frozen=True):
    text: str
    language: str


class EntityJson(Struct, frozen=True):
    """An entity as published, as far as it is needed. Wikidata may write an empty object as an empty list."""

    id: str = ""
    type: str = ""
    labels: dict[str, _Text] | list[None] = {}
    aliases: dict[str, list[_Text]] | list[None] = {}
    claims: dict[str, list[_Claim]] | list[None] = {}
    sitelinks: dict[str, msgspec.Raw] | list[None] = {}
    title: str = ""
    redirect: str | None = None
    missing: str | None = None


def entity(json: EntityJson, place: str) -> WikidataEntity | None:
    """The entity; None for redirects, missing entities and what is neither an item nor a property.

    Raises InputError, which names the place, where a value isn't in Wikidata's form.
    """
    try:
        return _entity(json)
    except (ValueError, msgspec.MsgspecError) as error:
        raise InputError(f"{place}: {json.id} isn't of Wikidata's form ({error}); correct it or take it out") from error


def _entity(json: EntityJson) -> WikidataEntity | None:
    if json.redirect is not None or json.missing is not None or json.type not in {"item", "property"}:
        return None
    label = next(iter(_labels(json)), None)
    if json.type == "property":
        return WikidataEntity(id=_number(json.id), is_property=True, label=label)
    return WikidataEntity(
        id=_number(json.id),
        is_property=False,
        label=label,
        names=() if _is_page(json) else tuple(dict.fromkeys([*_labels(json), *_aliases(json)])),
        links=len(json.sitelinks),
        statements=tuple(_statements(json)),
    )


def _labels(json: EntityJson) -> Iterator[str]:
    labels = _mapping(json.labels)
    return (labels[language].value for language in LANGUAGES if language in labels)


def _aliases(json: EntityJson) -> Iterator[str]:
    aliases = _mapping(json.aliases)
    return (alias.value for language in LANGUAGES for alias in aliases.get(language, ()))


def _is_page(json: EntityJson) -> bool:
    values = (_item(claim.mainsnak) for claim in _mapping(json.claims).get(INSTANCE_OF, ()))
    return any(f"Q{number}" in NOT_ENTITIES for number in values)


def _statements(json: EntityJson) -> Iterator[Statement]:
    for property_, claims in _mapping(json.claims).items():
        for number, claim in enumerate(claims):
            # Deprecated claims are known to be wrong.
            if claim.rank != "deprecated" and (statement := _statement(property_, number, claim)):
                yield statement


def _statement(property_: str, number: int, claim: _Claim) -> Statement | None:
    """The claim as a statement; None where it isn't dated or its value can't be said in a sentence."""
    point, start, end = map(_time_among, map(_mapping(claim.qualifiers).get, (POINT, START, END)))
    if not (point or start or end or _is_time(claim.mainsnak)):  # most claims
        return None
    value = _value(claim.mainsnak)
    if value is None:
        return None
    kind, item, text = value
    return Statement(
        property=_number(property_), number=number, kind=kind, item=item, text=text, point=point, start=start, end=end
    )


def _value(snak: _Snak) -> tuple[ValueKind, int | None, str] | None:
    match snak.datavalue:
        case _DataValue("wikibase-entityid"):
            item = _item(snak)
            return None if item is None else ("item", item, "")
        case _DataValue("time"):
            time = _time(snak)
            return None if time is None else ("time", None, time)
        case _DataValue("quantity", raw):
            amount = msgspec.json.decode(raw, type=_Amount)
            # Units are items' URLs; a quantity without one has the unit `1`.
            unit = amount.unit.rpartition("/Q")[2]
            return "quantity", _number(f"Q{unit}") if "/Q" in amount.unit else None, amount.amount.removeprefix("+")
        case _DataValue("monolingualtext", raw):
            text = msgspec.json.decode(raw, type=_Monolingual)
            return ("text", None, text.text) if text.language in LANGUAGES else None
        case _DataValue("string", raw) if snak.datatype == "string":
            return "text", None, msgspec.json.decode(raw, type=str)
    return None


def _time_among(qualifiers: list[_Snak] | None) -> str | None:
    return next(filter(None, map(_time, qualifiers)), None) if qualifiers else None


def _time(snak: _Snak) -> str | None:
    if snak.datavalue is None or not _is_time(snak):
        return None
    return in_words(msgspec.json.decode(snak.datavalue.value, type=Time))


def _is_time(snak: _Snak) -> bool:
    return snak.datavalue is not None and snak.datavalue.type == "time"


def _item(snak: _Snak) -> int | None:
    if snak.datavalue is None or snak.datavalue.type != "wikibase-entityid":
        return None
    id_ = msgspec.json.decode(snak.datavalue.value, type=_Id).id
    return _number(id_) if id_.startswith("Q") else None


def _number(id_: str) -> int:
    number = int(id_[1:])
    if not 0 <= number <= MAX_NUMBER:
        raise ValueError(f"there is no {id_[0]}{number}")
    return number


def _mapping(value: dict[str, T] | list[None]) -> dict[str, T]:
    return value if isinstance(value, dict) else {}
