"""Coverage of gold paragraphs by a corpus, and alignment of gold with the corpus's paragraphs."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz

from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.datasets.spec import ParagraphLookup
from cotrail.evaluation.metrics.supporting_paragraphs import content_key

ParagraphsOfTitle = Callable[[str], Iterable[Paragraph]]
"""Returns all paragraphs of a corpus with exactly this title."""

LEAST_SIMILARITY = 95.0
"""Paragraphs count as the same above this `partial_ratio`, in percent (`find_matching_paragraph_text` in `lib.py` of
IRCoT's released code)."""


class MissingGold(Struct, frozen=True, kw_only=True):
    """A gold paragraph that is missing from the corpus; question: the id of its question."""

    question: str
    paragraph: GoldParagraph


class Coverage(Struct, frozen=True, kw_only=True):
    """gold: number of gold paragraphs, a shared one counted once per question; missing: those not in the corpus."""

    gold: int
    missing: tuple[MissingGold, ...]


def coverage(
    questions: Sequence[Question], paragraphs_of_title: ParagraphsOfTitle, paragraphs_of_ids: ParagraphLookup
) -> Coverage:
    """Compare gold with the corpus as recall is scored: by `content_key`, or by their ids or their titles."""
    keys = cache(lambda title: frozenset(_keys(paragraphs_of_title(title))))

    def is_there(gold: GoldParagraph, ids: Container[str]) -> bool:
        match gold.by:
            case "content":
                return any(content_key(gold.title, gold.text) in keys(title) for title in _titles(gold))
            case "id":
                return gold.id in ids
            case "title":
                return bool(keys(gold.title))

    missing = []
    for question in questions:
        ids = paragraphs_of_ids([gold.id for gold in question.gold if gold.by == "id"])
        lacking = (gold for gold in question.gold if not is_there(gold, ids))
        missing += [MissingGold(question=question.id, paragraph=gold) for gold in lacking]
    return Coverage(gold=sum(len(question.gold) for question in questions), missing=tuple(missing))


def located(
    questions: Sequence[Question], paragraphs_of_title: ParagraphsOfTitle, *, snippets: bool = False
) -> tuple[Question, ...]:
    """Replace gold that only resembles paragraphs of the corpus by those paragraphs.

    The most similar paragraph of the gold's page replaces it if more than 95 percent of the shorter one's length match,
    as in the authors' `subsample_dataset_and_remap_paras.py`. Where gold is `snippets` of paragraphs (IIRC), any
    similarity is enough, as in their `process_iirc.py`. Gold whose page isn't in the corpus stays as it is, and
    `coverage` then reports it.
    """
    page = cache(lambda title: tuple(paragraphs_of_title(title)))
    least = -1.0 if snippets else LEAST_SIMILARITY

    def found(gold: GoldParagraph) -> GoldParagraph:
        return _best(gold, [paragraph for title in _titles(gold) for paragraph in page(title)], least) or gold

    return tuple(replace(question, gold=tuple(dict.fromkeys(map(found, question.gold)))) for question in questions)


def _best(gold: GoldParagraph, page: Sequence[Paragraph], least: float) -> GoldParagraph | None:
    """The most similar paragraph of a page (the first of equals), if its similarity exceeds `least` percent."""
    if gold.by != "content" or not page or not gold.text.strip() or content_key(gold.title, gold.text) in _keys(page):
        return None
    scores = [fuzz.partial_ratio(gold.text, paragraph.text) for paragraph in page]
    best = max(scores)
    if best <= least:
        return None
    paragraph = page[scores.index(best)]
    return GoldParagraph(title=paragraph.title, text=paragraph.text)


def _titles(gold: GoldParagraph) -> tuple[str, ...]:
    """Possible titles of the paragraph; IIRC's file of articles has them in lower case."""
    return tuple(dict.fromkeys((gold.title, gold.title.lower())))


def _keys(paragraphs: Iterable[Paragraph]) -> Iterator[str]:
    return (content_key(paragraph.title, paragraph.text) for paragraph in paragraphs)
