"""Dated statements on the entities that a sentence names.

Entity linking: the entities that a sentence names.

The authors' linker, spacy-entity-linker, takes the likeliest entity for each phrase. Here a name is the longest run of
words that is a label or an alias, and it means the item of that name with the most pages.

Templates that turn dated statements into sentences.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.toml_files import read_toml
from cotrail.core.ports.retriever import Sentence, ranked
from cotrail.core.questions import Hit
from cotrail.engines.knowledge.database import BuiltSource, Database
from cotrail.engines.knowledge.wikidata.entities import normalized_name
from cotrail.engines.knowledge.words import LISTS, STOP_WORDS, capitalized, content, runs, words

_WRITTEN = msgspec.convert(
    read_toml(Path(__file__).parents[1] / "wikidata_templates.toml"), dict[str, dict[int, str]], str_keys=True
)
EVENT_TEMPLATES = _WRITTEN["events"]
"""Templates of properties whose value is a time, by their numbers."""

RELATION_VERBS = _WRITTEN["verbs"]
"""Verbs that connect an item with the value of a property, by the properties' numbers."""

_PREPOSITION = "(?:at|by|for|from|in|of|on|to|with)"
_LIKE_A_VERB = re.compile(rf"\A(?:\w+ed {_PREPOSITION}\b.*|.* {_PREPOSITION})$")


class DatedStatement(Struct, frozen=True):
    """A dated statement with the labels of its entities; times in words."""

    item: int
    property: int
    number: int
    subject: str
    label: str
    is_time: bool
    value: str
    point: str | None = None
    start: str | None = None
    end: str | None = None


def sentence(statement: DatedStatement) -> str:
    """The statement as a sentence: "Tim Pawlenty held the position of Governor of Minnesota from 2003 to 2011."."""
    if statement.is_time:
        return capitalized(_happened(statement))
    return capitalized(f"{_stated(statement)} {_when(statement)}.")


def _happened(statement: DatedStatement) -> str:
    if template := EVENT_TEMPLATES.get(statement.property):
        return template.format(statement.subject, statement.value)
    return f"the {statement.label} of {statement.subject} was in {statement.value}."


def _stated(statement: DatedStatement) -> str:
    label = statement.label
    if verb := RELATION_VERBS.get(statement.property):
        return f"{statement.subject} {verb} {statement.value}"
    if _LIKE_A_VERB.fullmatch(label):
        return f"{statement.subject} was {label} {statement.value}"
    return f"the {label} of {statement.subject} was {statement.value}"


def _when(statement: DatedStatement) -> str:
    match statement.start, statement.end:
        case None, None:
            return f"in {statement.point}"
        case start, None:
            return f"since {start}"
        case None, end:
            return f"until {end}"
        case start, end if start == end:
            return f"in {start}"
    return f"from {statement.start} to {statement.end}"


MOST_NAME_WORDS = 10
"""The most words of a name."""

_CALENDAR = frozenset(LISTS["calendar"].split())
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?", re.IGNORECASE)

_CALLED = """
SELECT key, name, item, links, statements FROM names JOIN items ON id = item
WHERE key IN (SELECT value FROM json_each(?))
"""


class _Called(Struct, frozen=True):
    """An item with one of its names, and its popularity."""

    name: str
    item: int
    links: int
    statements: int

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key: the most popular first, equals by number."""
        return -self.links, -self.statements, self.item


class _Named(Struct, frozen=True):
    """An item that a sentence names, the position where the name ends, and whether its case matches."""

    item: int
    end: int
    is_exact: bool


def link(database: Database, sentence: str) -> tuple[int, ...]:
    """The numbers of the items that the sentence names, in order, each once.

    Names match in their own case; the first word of a sentence may also be in lower case. Names of several words match
    in any case, and in a sentence without capitals all names do. Within a name that matched in another case, names that
    match in their own case count too: "governor of Minnesota" names an office and a state.
    """
    sequence = words(sentence)
    items_by_name = _called(database, sequence)
    shortest = 2 if any(word != word.lower() for word in sequence[1:]) else 1
    items: list[int] = []
    position = loose_until = 0
    while position < len(sequence):
        # Within a name that matched in another case no run is long enough, unless it matches in its own case.
        least = MOST_NAME_WORDS + 1 if position < loose_until else shortest
        match _longest(sequence, position, items_by_name, least):
            case None:
                position += 1
            case _Named(item, end, is_exact=True):
                items.append(item)
                position = end
            case _Named(item, end):
                items.append(item)
                position, loose_until = position + 1, end
    return tuple(dict.fromkeys(items))


def _called(database: Database, sequence: Sequence[str]) -> dict[str, list[_Called]]:
    """The items by each run of words that may be their name."""
    # One query for the whole sentence.
    keys = sorted({normalized_name(" ".join(run))[0] for _, run in runs(sequence, MOST_NAME_WORDS) if _may_name(run)})
    items_by_name = defaultdict(list)
    for key, *item in database.rows(_CALLED, keys):
        items_by_name[key].append(_Called(*item))
    return items_by_name


def _longest(
    sequence: Sequence[str], position: int, items_by_name: dict[str, list[_Called]], least: int
) -> _Named | None:
    """The longest name from a position on; one in another case needs at least `least` words."""
    for end in range(min(position + MOST_NAME_WORDS, len(sequence)), position, -1):
        key, spelling = normalized_name(" ".join(sequence[position:end]))
        forms = {spelling} if position else {spelling, spelling[:1].lower() + spelling[1:]}
        alike = [item for item in items_by_name.get(key, ()) if item.name in forms]
        if items := alike or (items_by_name.get(key) if end - position >= least else None):
            return _Named(min(items, key=lambda item: item.order).item, end, bool(alike))
    return None


def _may_name(run: Sequence[str]) -> bool:
    """Return whether a run has more than numbers, dates and stop words."""
    lowered = (word.lower() for word in run)
    return any(word not in STOP_WORDS | _CALENDAR and not _NUMBER.fullmatch(word) for word in lowered)


_DATED = (Path(__file__).parents[1] / "wikidata_dated.sql").read_text("utf-8")


class Wikidata(BuiltSource):
    """Dated statements on the entities that a sentence names."""

    name = "wikidata"

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:  # noqa: ARG002 - a source of one text
        """A sentence for each dated statement; the score is its cosine similarity with the text as sets of words."""
        question_words = content(text)
        statements = (DatedStatement(*row) for row in self._database.rows(_DATED, list(link(self._database, text))))
        return ranked(_sentence(question_words, statement) for statement in statements)


def _sentence(question_words: frozenset[str], statement: DatedStatement) -> Sentence:
    text = sentence(statement)
    own = content(text)
    return Sentence(
        id=f"wikidata:Q{statement.item}#P{statement.property}/{statement.number}",
        text=text,
        score=len(own & question_words) / math.sqrt(len(own) * len(question_words)) if own and question_words else 0.0,
    )
