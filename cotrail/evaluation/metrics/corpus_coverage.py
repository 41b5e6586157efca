"""How many of the gold paragraphs a corpus holds, and which of its paragraphs they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph, Question
from cotrail.evaluation.metrics.supporting_paragraphs import content_key

ParagraphsOfTitle = Callable[[str], Iterable[Paragraph]]
"""Gives all paragraphs of a corpus with this very title."""

ALIKE = 95.0
"""Above this `partial_ratio`, in percent, two paragraphs are one (IRCoT's released code, `find_matching_paragraph_text`
in `lib.py`)."""


class MissingGold(Struct, frozen=True, kw_only=True):
    """A gold paragraph that the corpus doesn't hold; question: the id of the question."""

    question: str
    paragraph: GoldParagraph


class Coverage(Struct, frozen=True, kw_only=True):
    """gold: how many gold paragraphs the questions have, a shared one counted for each; missing: those not there."""

    gold: int
    missing: tuple[MissingGold, ...]


def coverage(questions: Sequence[Question], paragraphs_of_title: ParagraphsOfTitle) -> Coverage:
    """Counts the gold paragraphs that the corpus holds, by the rule by which recall is scored (`content_key`)."""
    keys = cache(lambda title: frozenset(_keys(paragraphs_of_title(title))))
    missing = tuple(
        MissingGold(question=question.id, paragraph=gold)
        for question in questions
        for gold in question.gold
        if not any(content_key(gold.title, gold.text) in keys(title) for title in _titles(gold))
    )
    return Coverage(gold=sum(len(question.gold) for question in questions), missing=missing)


def located(
    questions: Sequence[Question], paragraphs_of_title: ParagraphsOfTitle, *, snippets: bool = False
) -> tuple[Question, ...]:
    """The questions, with paragraphs of the corpus for gold that only resembles them.

    The paragraph of the gold's page that is most alike stands for it: if it is so by more than 95 percent of the
    shorter one's length, as in the authors' `subsample_dataset_and_remap_paras.py`, and where gold is `snippets` of
    paragraphs (IIRC), however little alike it is, as in their `process_iirc.py`. Gold whose page isn't there stays as
    it is, and `coverage` then counts it.
    """
    page = cache(lambda title: tuple(paragraphs_of_title(title)))
    least = -1.0 if snippets else ALIKE

    def found(gold: GoldParagraph) -> GoldParagraph:
        return _best(gold, [paragraph for title in _titles(gold) for paragraph in page(title)], least) or gold

    return tuple(replace(question, gold=tuple(dict.fromkeys(map(found, question.gold)))) for question in questions)


def _best(gold: GoldParagraph, page: Sequence[Paragraph], least: float) -> GoldParagraph | None:
    """The most alike paragraph of a page, the first of equals, if it is more alike than `least` percent."""
    if not page or not gold.text.strip() or content_key(gold.title, gold.text) in _keys(page):
        return None
    scores = [fuzz.partial_ratio(gold.text, paragraph.text) for paragraph in page]
    best = max(scores)
    if best <= least:
        return None
    paragraph = page[scores.index(best)]
    return GoldParagraph(title=paragraph.title, text=paragraph.text)


def _titles(gold: GoldParagraph) -> tuple[str, ...]:
    """The titles that the paragraph may have; IIRC's articles are named in lower case."""
    return tuple(dict.fromkeys((gold.title, gold.title.lower())))


def _keys(paragraphs: Iterable[Paragraph]) -> Iterator[str]:
    return (content_key(paragraph.title, paragraph.text) for paragraph in paragraphs)
