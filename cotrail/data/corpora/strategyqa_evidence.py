"""StrategyQA's paragraphs: the facts that its question files state, and those of `strategyqa_train_paragraphs.json`."""

from collections.abc import Iterator

from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.core.paragraphs import Paragraph
from cotrail.data.datasets.strategyqa import StrategyQuestion
from cotrail.errors import CorpusError


class _Evidence(Struct, frozen=True):
    title: str
    content: str


def facts(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The facts of a question, each titled with the term that the question was written about."""
    entry = decode(raw, StrategyQuestion, place, CorpusError)
    return ((entry.term, fact.strip()) for fact in entry.facts if fact.strip())


def paragraph(place: str, raw: bytes) -> Paragraph:
    """The paragraph of a member of the file, given as a pair of its id and its content."""
    id_, evidence = decode(raw, tuple[str, _Evidence], place, CorpusError)
    return Paragraph(id=id_, title=evidence.title, text=evidence.content)
