"""Finding the entities that a sentence names.

The authors' linker, spacy-entity-linker, takes the likeliest entity for each phrase. Here a name is the longest run of
words that is a label or an alias, and of the items that are called so the one with the most pages is meant.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.wikidata.names import normalized_name
from cotrail.engines.knowledge.words import STOP_WORDS, runs, words

LONGEST = 10
"""How many words a name has at most."""

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
    """An item with one of its names, and how well known it is."""

    name: str
    item: int
    links: int
    statements: int

    @property
    def order(self) -> tuple[int, int, int]:
        """The best known first, equals by number."""
        return -self.links, -self.statements, self.item


class _Named(Struct, frozen=True):
    """An item that a sentence names, where the name ends in it, and whether that is written alike."""

    item: int
    end: int
    is_exact: bool


def link(database: Database, sentence: str) -> tuple[int, ...]:
    """The numbers of the items that the sentence names, in its order, each once.

    Names count as they are written; the first word may also be one in lower case. Whatever their case, names of several
    words count too, and in a sentence without capitals all. Within such a one those count that are written alike:
    "governor of Minnesota" names an office and a state.
    """
    sequence = words(sentence)
    called = _called(database, sequence)
    shortest = 2 if any(word != word.lower() for word in sequence[1:]) else 1
    items: list[int] = []
    position = loose_until = 0
    while position < len(sequence):
        least = LONGEST + 1 if position < loose_until else shortest
        match _longest(sequence, position, called, least):
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
    """The items by each run of the words that may be their name."""
    keys = sorted({normalized_name(" ".join(run))[0] for _, run in runs(sequence, LONGEST) if _may_name(run)})
    called = defaultdict(list)
    for key, *item in database.rows(_CALLED, keys):
        called[key].append(_Called(*item))
    return called


def _longest(sequence: Sequence[str], position: int, called: dict[str, list[_Called]], least: int) -> _Named | None:
    """The longest name from there on; one of other case has at least so many words."""
    for end in range(min(position + LONGEST, len(sequence)), position, -1):
        key, written = normalized_name(" ".join(sequence[position:end]))
        forms = {written} if position else {written, written[:1].lower() + written[1:]}
        alike = [item for item in called.get(key, ()) if item.name in forms]
        if found := alike or (called.get(key) if end - position >= least else None):
            return _Named(min(found, key=lambda item: item.order).item, end, bool(alike))
    return None


def _may_name(run: Sequence[str]) -> bool:
    """Whether there is more in it than numbers, dates and words that hold sentences together."""
    lowered = (word.lower() for word in run)
    return any(word not in STOP_WORDS | _CALENDAR and not _NUMBER.fullmatch(word) for word in lowered)
