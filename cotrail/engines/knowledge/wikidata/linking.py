"""Entity linking: the entities that a sentence names.

The authors' linker, spacy-entity-linker, takes the likeliest entity for each phrase. Here a name is the longest run of
words that is a label or an alias, and it means the item of that name with the most pages.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.wikidata.names import normalized_name
from cotrail.engines.knowledge.words import STOP_WORDS, runs, words

MOST_NAME_WORDS = 10
"""The most words of a name."""

_CALENDAR = frozenset(
    (  # noqa: SIM905
        "january february march april june july august september october november december "
        "monday tuesday wednesday thursday friday saturday sunday ad bc ce bce century year day"
    ).split()
)
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
