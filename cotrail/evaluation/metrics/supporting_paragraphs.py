"""How well the paragraphs that a system collected agree with the gold ones.

The arithmetic is HotpotQA's for supporting facts as the released code of IRCoT applies it to whole paragraphs and to
titles (`metrics/support_em_f1.py`). Paragraphs are the same where title and text are, whatever their ids: by the rule
of that code (`get_pid_for_title_paragraph_text` in `commaqa/inference/dataset_readers.py`) for the datasets that it
knows, and by `content_key`, which can tell other scripts apart, for others.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.metrics.drop import published_spans
from cotrail.evaluation.metrics.text_repair import repaired

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_SPACE = re.compile(r"\s")
_SPACES = re.compile(" +")

_REMEMBERED = 2**15
"""Titles and texts whose folding is remembered: the runs of an experiment find much the same paragraphs."""

Fold = Callable[[str], str]
"""Leaves of a title or a text what decides whether it is another's."""


class SupportScores(Struct, frozen=True, kw_only=True):
    """How well the collected paragraphs agree with the gold ones, each from 0 to 1; there is no order in it.

    title_recall: the share of the gold titles of which some paragraph was collected.
    """

    em: float
    f1: float
    precision: float
    recall: float
    title_recall: float


def support_scores(
    dataset: str,
    collected: Iterable[Paragraph],
    gold: Sequence[GoldParagraph],
    pinned: GoldParagraph | None = None,
) -> SupportScores | None:
    """The scores of one question; None where no gold paragraph is published.

    pinned: the passage that the question is about and that was there from the beginning (IIRC). It counts neither for
        nor against the system, and neither do gold paragraphs of its title. In the released code it counts against
        the precision where it is among the collected, and a question without further gold paragraphs counts 0.
    """
    fold = _whole if dataset == "jsonl" else _ascii
    found = {(fold(each.title), fold(each.text)) for each in collected}
    if pinned is not None:
        found -= {(fold(pinned.title), fold(pinned.text))}
        gold = [each for each in gold if each.title != pinned.title]
    wanted = {(fold(each.title), fold(each.text)) for each in gold}
    if not wanted:
        return None
    shared = len(found & wanted)
    precision, recall = shared / len(found) if found else 0.0, shared / len(wanted)
    titles = {title for title, _ in wanted}
    return SupportScores(
        em=float(found == wanted),
        f1=2 * precision * recall / (precision + recall) if shared else 0.0,
        precision=precision,
        recall=recall,
        title_recall=len(titles & {title for title, _ in found}) / len(titles),
    )


def support_recall(collected: Iterable[Paragraph], gold: Sequence[GoldParagraph]) -> float | None:
    """The share of the gold paragraphs that are among the collected ones; None where none are published.

    Paragraphs are the same where their `content_key` is.
    """
    scores = support_scores("jsonl", collected, gold)
    return None if scores is None else scores.recall


def answer_support_recall(collected: Iterable[Paragraph], answers: Sequence[str]) -> float | None:
    """The share of the main answer's spans that stand in some collected paragraph; None where no answer is published.

    A span stands in it word for word in any case, or with both normalized (`metrics/answer_support_recall.py` in the
    released code of IRCoT).
    """
    if not answers:
        return None
    texts = [f"{each.title} {each.text}" for each in collected]
    spans = published_spans(answers[0])
    return sum(_stands_in(span, texts) for span in spans) / len(spans)


def _stands_in(span: str, texts: Sequence[str]) -> bool:
    plain, words = _plain(span), normalized(span)
    return any(plain in _plain(text) for text in texts) or any(words in normalized(text) for text in texts)


def content_key(title: str, text: str) -> str:
    """The same for paragraphs that differ only in white space, in case and in characters beyond ASCII."""
    return f"{_whole(title)}\0{_whole(text)}"


@lru_cache(maxsize=_REMEMBERED)
def _ascii(text: str) -> str:
    """IRCoT's folding: mended, without spaces and characters beyond ASCII, in lower case."""
    return _BEYOND_ASCII.sub("", repaired(text.strip())).replace(" ", "").lower()


@lru_cache(maxsize=_REMEMBERED)
def _whole(text: str) -> str:
    """IRCoT's folding, except where it would leave less than half: in other scripts, all texts would be the same."""
    whole, ascii_only = _SPACE.sub("", repaired(text).lower()), _SPACE.sub("", _ascii(text))
    return ascii_only if 2 * len(ascii_only) >= len(whole) else whole


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text.lower().strip())
