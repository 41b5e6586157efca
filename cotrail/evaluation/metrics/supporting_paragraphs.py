"""Agreement of the paragraphs that a system collected with the gold ones.

The arithmetic is HotpotQA's for supporting facts, as the released code of IRCoT applies it to paragraphs and to titles
(`metrics/support_em_f1.py`). Paragraphs are compared by title and text, not by id: for the datasets that the released
code knows by its rule (`get_pid_for_title_paragraph_text` in `commaqa/inference/dataset_readers.py`), for others by
`content_key`, which works for other scripts than Latin too.
"""

import re
import string
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from functools import lru_cache, partial
from itertools import chain
from math import log2

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics.answer_scores import published_spans, repaired

# Rankings against judged documents: NDCG, recall and reciprocal rank, with trec_eval's arithmetic.
#
# trec_eval's measures are `ndcg_cut`, `recall` and `recip_rank` (usnistgov/trec_eval, `m_ndcg_cut.c`, `m_recall.c`,
# `m_recip_rank.c`), which BEIR's figures are too, through pytrec_eval. The ranking is that of the paragraphs in the
# order in which they were found, over all searches of a question.


class Judged(Struct, frozen=True):
    """A gold document: its grade, and the rank from 1 at which it was first found; None where it wasn't."""

    grade: int
    rank: int | None


def ndcg(documents: Sequence[Judged], cut: int) -> float | None:
    """The discounted gain of the first `cut` paragraphs over that of the best order; None where nothing is judged.

    A document gains its grade, divided by the binary logarithm of its rank plus 1.
    """
    if not documents:
        return None
    best = sorted((each.grade for each in documents), reverse=True)[:cut]
    gained = (each.grade / log2(each.rank + 1) for each in documents if each.rank and each.rank <= cut)
    return sum(gained) / sum(grade / log2(rank + 1) for rank, grade in enumerate(best, start=1))


def recall_at(documents: Sequence[Judged], cut: int) -> float | None:
    """Share of the documents that are among the first `cut` paragraphs; None where nothing is judged."""
    if not documents:
        return None
    return sum(each.rank is not None and each.rank <= cut for each in documents) / len(documents)


def reciprocal_rank(documents: Sequence[Judged]) -> float | None:
    """1 over the rank of the first document found, 0 where none was; None where nothing is judged."""
    if not documents:
        return None
    return max((1 / each.rank for each in documents if each.rank), default=0.0)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_SPACE = re.compile(r"\s")
_PUNCTUATION = string.punctuation.encode()
_SPACES = re.compile(" +")

_MOST_CACHED = 2**18
"""Size of the caches of folded titles and texts that aren't plain: the runs of an experiment find mostly the same
paragraphs."""

Fold = Callable[[str], str]
"""Reduces a title or a text to the characters by which it is compared."""

Content = tuple[str, str]
"""A title and a text as they are compared."""

Key = tuple[str, ...]
"""What a gold paragraph is recognised by: its content, its id or its title, which are as many texts: 2, 3 and 1."""


class SupportScores(Struct, frozen=True, kw_only=True):
    """Agreement of two sets of paragraphs, each score from 0 to 1; order doesn't matter.

    title_recall: share of the gold titles from which any paragraph was collected; None where gold has no titles.
    """

    em: float
    f1: float
    precision: float
    recall: float
    title_recall: float | None


class ComparedParagraphs(Struct, frozen=True, kw_only=True):
    """A question's collected and gold paragraphs, by what they are compared by; the pinned passage is in neither.

    ranked: the contents of the collected ones. right: the keys of gold that each of them counts as, of most none.
    grades: of the gold ones, by their keys. titles: of those of them that have one.
    """

    ranked: Sequence[Content] = ()
    right: Sequence[Sequence[Key]] = ()
    grades: Mapping[Key, int] = {}
    titles: frozenset[str] = frozenset()


def compared_paragraphs(
    scoring: Scoring, collected: Iterable[Paragraph], gold: Sequence[GoldParagraph], pinned: GoldParagraph | None = None
) -> ComparedParagraphs:
    """Return a question's paragraphs as they are compared; pinned: see `support_scores`."""
    wanted = counted(gold, pinned)
    if not wanted:
        return ComparedParagraphs()
    found = tuple(collected)
    contents = _contents_among((*found, *wanted, *((pinned,) if pinned else ())), fold_of(scoring))
    ranked, of_wanted = contents[: len(found)], contents[len(found) : len(found) + len(wanted)]
    if pinned:
        found, ranked = _without(contents[-1], found, ranked)
    grades = {_key(each, content): each.grade for each, content in zip(wanted, of_wanted, strict=True)}
    return ComparedParagraphs(
        ranked=ranked,
        right=_right(found, ranked, grades, {each.by for each in wanted}),
        grades=grades,
        titles=frozenset(title for each, (title, _) in zip(wanted, of_wanted, strict=True) if each.title),
    )


def support_scores(
    scoring: Scoring, collected: Iterable[Paragraph], gold: Sequence[GoldParagraph], pinned: GoldParagraph | None = None
) -> SupportScores | None:
    """Score one question; None where no gold paragraph is published.

    pinned: the passage that the question is about, which every prompt shows (IIRC). It counts neither for nor against
        the system, and neither do gold paragraphs of its title. This deviates from the released code, where a
        collected pinned passage lowers the precision, and a question without further gold paragraphs has a recall of 0
        (docs/deviations.md).
    """
    return support_of(compared_paragraphs(scoring, collected, gold, pinned))


def support_of(compared: ComparedParagraphs) -> SupportScores | None:
    """The same of paragraphs that are compared already."""
    wanted, titles = compared.grades.keys(), compared.titles
    if not wanted:
        return None
    found = dict(zip(compared.ranked, compared.right, strict=True))
    right, reached = sum(map(bool, found.values())), set(chain.from_iterable(found.values()))
    precision, recall = right / len(found) if found else 0.0, len(reached) / len(wanted)
    return SupportScores(
        em=float(right == len(found) and reached == wanted),
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        precision=precision,
        recall=recall,
        title_recall=len(titles & {title for title, _ in found}) / len(titles) if titles else None,
    )


def judged(
    scoring: Scoring, found: Sequence[Paragraph], gold: Sequence[GoldParagraph], pinned: GoldParagraph | None = None
) -> tuple[Judged, ...]:
    """The gold documents of a question, each once; pinned: takes no rank, and see `support_scores`.

    Of a page that is gold as a whole, the first paragraph counts, and the others as not relevant.
    """
    return judged_of(compared_paragraphs(scoring, found, gold, pinned))


def judged_of(compared: ComparedParagraphs) -> tuple[Judged, ...]:
    """The same of paragraphs that are compared already."""
    ranks: dict[Key, int] = {}
    for rank, keys in enumerate(compared.right, start=1):
        for key in keys:
            ranks.setdefault(key, rank)
    return tuple(Judged(grade, ranks.get(key)) for key, grade in compared.grades.items())


def counted(gold: Sequence[GoldParagraph], pinned: GoldParagraph | None) -> Sequence[GoldParagraph]:
    """The gold paragraphs that count, see `support_scores`: all but those of the pinned passage's title."""
    return gold if pinned is None else [each for each in gold if each.title != pinned.title]


def gold_key(gold: GoldParagraph, fold: Fold) -> Key:
    """What paragraphs that count as this gold one have among their keys."""
    return _key(gold, content_of(gold, fold))


def paragraph_keys(paragraph: Paragraph, fold: Fold) -> frozenset[Key]:
    """All keys of gold that a paragraph counts as: by its content, by its id and by its title."""
    return frozenset(_keys(paragraph, content_of(paragraph, fold), ("id", "title")))


def _key(gold: GoldParagraph, content: Content) -> Key:
    match gold.by:
        case "content":
            return content
        case "id":
            return _id(gold)
        case "title":
            return content[:1]


def _right(
    found: Sequence[Paragraph], contents: Sequence[Content], grades: Container[Key], ways: Set[str]
) -> list[Sequence[Key]]:
    """The keys of gold that each paragraph counts as; ways: those in which any gold paragraph is recognised."""
    if ways == {"content"}:
        return [(content,) if content in grades else () for content in contents]
    return [
        [key for key in _keys(each, content, ways) if key in grades]
        for each, content in zip(found, contents, strict=True)
    ]


def _without(
    pinned: Content, found: Sequence[Paragraph], contents: Sequence[Content]
) -> tuple[tuple[Paragraph, ...], list[Content]]:
    """The paragraphs of another content than the pinned passage's, and their contents."""
    kept = [pair for pair in zip(found, contents, strict=True) if pair[1] != pinned]
    return tuple(each for each, _ in kept), [content for _, content in kept]


def _keys(paragraph: Paragraph, content: Content, ways: Container[str]) -> tuple[Key, ...]:
    """The content, and the other keys by which gold paragraphs are recognised in these ways."""
    by_id = (_id(paragraph),) if "id" in ways else ()
    by_title = (content[:1],) if "title" in ways else ()
    return (content, *by_id, *by_title)


def _id(paragraph: Paragraph | GoldParagraph) -> Key:
    return ("id", paragraph.id, "")


def content_of(paragraph: Paragraph | GoldParagraph, fold: Fold) -> Content:
    """Title and text as they are compared."""
    return fold(paragraph.title), fold(paragraph.text)


def _contents_among(paragraphs: Sequence[Paragraph | GoldParagraph], fold: Fold) -> list[Content]:
    """Contents that are equal where those of `content_of` are, among these paragraphs.

    Folding texts takes longer than all else in scoring, and only those of the same title need it, where they differ.
    """
    titles = [fold(each.title) for each in paragraphs]
    texts: dict[str, str] = {}
    unlike = {
        title for title, each in zip(titles, paragraphs, strict=True) if texts.setdefault(title, each.text) != each.text
    }
    if not unlike:
        return [(title, "") for title in titles]
    return [(title, fold(each.text) if title in unlike else "") for title, each in zip(titles, paragraphs, strict=True)]


def fold_of(scoring: Scoring) -> Fold:
    """Return the rule by which titles and texts of a dataset's paragraphs are compared."""
    return _FOLD_WHOLE if scoring.any_script else _FOLD_ASCII


def answer_support_recall(collected: Iterable[Paragraph], answers: Sequence[str]) -> float | None:
    """Share of the first answer's spans that occur in a collected paragraph; None where no answer is published.

    Spans are searched case-insensitively, and once more with both texts normalized (`metrics/answer_support_recall.py`
    in the released code of IRCoT).
    """
    if not answers:
        return None
    spans, found = published_spans(answers[0]), tuple(collected)
    return sum(_stands_in(span, found) for span in spans) / len(spans)


def _stands_in(span: str, paragraphs: Sequence[Paragraph]) -> bool:
    # Mostly it stands there as it is. Beyond ASCII, the case of a character may depend on those around it.
    if span.isascii() and any(span in each.text for each in paragraphs):
        return True
    plain, words = _plain(span), normalized(span)
    needed = [word.encode(errors="surrogatepass") for word in words.split()]
    return any(_has(plain, words, needed, f"{each.title} {each.text}") for each in paragraphs)


def _has(plain: str, words: str, needed: Sequence[bytes], text: str) -> bool:
    # Normalizing takes long, and where either is found, the text has each word without case and punctuation.
    bare = text.lower().encode(errors="surrogatepass").translate(None, _PUNCTUATION)
    return all(word in bare for word in needed) and (plain in _plain(text) or words in normalized(text))


def content_key(title: str, text: str) -> str:
    """Key that is equal for paragraphs that differ only in white space, case and characters beyond ASCII."""
    return f"{_whole(title)}\0{_whole(text)}"


def is_gold(paragraph: Paragraph, gold: Sequence[GoldParagraph]) -> bool:
    """Return whether the dataset marks the paragraph as needed, as in the recall."""
    keys = paragraph_keys(paragraph, _whole)
    return any(gold_key(each, _whole) in keys for each in gold)


def _folded(otherwise: Fold, text: str) -> str:
    """IRCoT's folding of plain text, on which both ways agree, and that of any other."""
    if text.isascii() and text.isprintable() and "&" not in text:
        return text.replace(" ", "").lower()
    return otherwise(text)


@lru_cache(maxsize=_MOST_CACHED)
def _ascii(text: str) -> str:
    """IRCoT's folding: repaired, without spaces and characters beyond ASCII, in lower case."""
    whole = repaired(text.strip())
    return (whole if whole.isascii() else _BEYOND_ASCII.sub("", whole)).replace(" ", "").lower()


@lru_cache(maxsize=_MOST_CACHED)
def _whole(text: str) -> str:
    """IRCoT's folding, unless it removes more than half: texts in other scripts would all become equal."""
    whole, ascii_only = _SPACE.sub("", repaired(text).lower()), _SPACE.sub("", _ascii(text))
    return ascii_only if 2 * len(ascii_only) >= len(whole) else whole


_FOLD_ASCII, _FOLD_WHOLE = partial(_folded, _ascii), partial(_folded, _whole)


def _plain(text: str) -> str:
    plain = text.lower().strip()
    return _SPACES.sub(" ", plain) if "  " in plain else plain
