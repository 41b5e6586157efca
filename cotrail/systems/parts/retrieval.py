"""The paragraphs that a question has collected, and the queries that find more (IRCoT, section 3.1).

The rules that the paper does not state are those of the authors' released code, `commaqa/inference/ircot.py`.
"""

import re

from msgspec.structs import replace
from rapidfuzz import fuzz

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Scope
from cotrail.core.results import Result, Retrieved
from cotrail.systems.rethinking.settings import IRCoTSettings, RetrievalSettings

_ARITHMETIC = re.compile(r"(\d[\d,]*\.?\d+|\d+) [+-] (\d[\d,]*\.?\d+|\d+) = (\d[\d,]*\.?\d+|\d+)")


def collect(
    collected: tuple[Paragraph, ...],
    found: Result | tuple[Result, ...],
    settings: RetrievalSettings,
    pinned: Paragraph | None = None,
) -> tuple[Paragraph, ...]:
    """Adds what a search found, in rank order, up to the limit.

    Skipped are paragraphs of too many words, those whose title and text are both much like one already there, and the
    passage that the question pins as the corpus has it.
    """
    assert isinstance(found, Retrieved)  # noqa: S101 - what a Retrieve is answered with
    for hit in found.hits:
        paragraph = hit.paragraph
        if len(collected) >= settings.max_paragraphs:
            break
        if paragraph.text.count(" ") >= settings.max_paragraph_words:
            continue
        if _is_duplicate(paragraph, collected, settings) or _is_pinned(paragraph, pinned, settings):
            continue
        collected += (paragraph,)
    return collected


def _is_duplicate(paragraph: Paragraph, collected: tuple[Paragraph, ...], settings: RetrievalSettings) -> bool:
    if (
        settings.duplicates == "released"
        and any(paragraph.title == other.title for other in collected)
        and any(paragraph.text == other.text for other in collected)
    ):
        return True
    return any(_alike(paragraph, other, settings.duplicate_similarity) for other in collected)


def _is_pinned(paragraph: Paragraph, pinned: Paragraph | None, settings: RetrievalSettings) -> bool:
    """Whether this is the pinned passage, which is there already; IIRC's corpus has titles in lower case."""
    if pinned is None or settings.pinned != "once":
        return False
    one, other = (replace(each, title=each.title.lower()) for each in (paragraph, pinned))
    return _alike(one, other, settings.duplicate_similarity)


def _alike(one: Paragraph, other: Paragraph, similarity: float) -> bool:
    return (
        fuzz.ratio(one.title, other.title, score_cutoff=similarity) >= similarity
        and fuzz.ratio(one.text, other.text, score_cutoff=similarity) >= similarity
    )


def search(query: str, settings: RetrievalSettings, titles: tuple[str, ...], scope: Scope) -> Retrieve:
    """The search for a query, narrowed to these titles where there are any."""
    return Retrieve(
        query=query,
        count=settings.retrieval_count,
        titles=titles,
        scope=scope if titles else "only",
        distinct=settings.distinct_texts,
    )


def query_of(text: str, settings: RetrievalSettings) -> str:
    """A text as a query: without the words that only ask."""
    return " ".join(word for word in text.split(" ") if word.lower() not in settings.query_stop_words).strip()


def next_query(question: str, sentences: tuple[str, ...], settings: IRCoTSettings) -> str:
    """The last sentence that states something; the question where none does."""
    stating = (s for s in reversed(sentences) if not is_reasoning(s, settings.reasoning_openings))
    return query_of(next(stating, question), settings.retrieval)


def is_reasoning(sentence: str, openings: tuple[str, ...]) -> bool:
    """Whether a sentence merely concludes: it opens like a conclusion, or holds a sum or a difference."""
    return sentence.lower().startswith(openings) or _ARITHMETIC.search(sentence) is not None
