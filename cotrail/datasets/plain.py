"""cotrail's own form, for one's own questions: JSON Lines of `{"id", "question", "answers", "gold"}`.

`answers` (strings) and `gold` may be left out. A gold paragraph is its id in the corpus or `{"title", "text"}`.
A line may also say how many `hops` its question takes and by which `chain` of sentences; both are for its readers.
Any other field is refused, since it would be a misspelt one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cotrail.datasets.records import decode, lines
from cotrail.errors import DatasetError
from cotrail.paragraphs import Paragraph
from cotrail.questions import GoldParagraph, Question

Lookup = Callable[[Sequence[str]], Mapping[str, Paragraph]]
"""Gives the paragraphs of a corpus by their ids, those that are there."""


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A question as written in the file."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[str | GoldParagraph, ...] = ()
    hops: int | None = None
    chain: tuple[str, ...] = ()


def read(path: Path, lookup: Lookup | None) -> Iterator[tuple[str, Question]]:
    """The questions of the file, each with its place in it."""
    for place, raw in lines(path, DatasetError):
        line = decode(raw, Line, place, DatasetError)
        gold = _gold(line.gold, lookup, place)
        yield place, Question(id=line.id, text=line.question, answers=line.answers, gold=gold)


def _gold(gold: Sequence[str | GoldParagraph], lookup: Lookup | None, place: str) -> tuple[GoldParagraph, ...]:
    ids = [item for item in gold if isinstance(item, str)]
    if ids and lookup is None:
        raise DatasetError(f"{place}: gold paragraphs are given by id, so name the corpus that they are in")
    found = lookup(ids) if ids and lookup else {}
    if missing := [id_ for id_ in ids if id_ not in found]:
        raise DatasetError(
            f"{place}: the corpus has no paragraph {', '.join(missing)}; give ids of this corpus, or title and text"
        )
    return tuple(
        GoldParagraph(title=found[item].title, text=found[item].text) if isinstance(item, str) else item
        for item in gold
    )
