"""The paragraphs that a question has collected, and the queries that find more (IRCoT, section 3.1).

The rules that the paper does not state are those of the authors' released code, `commaqa/inference/ircot.py`.
"""

import re

from rapidfuzz import fuzz

from cotrail.actions import Result, Retrieved
from cotrail.paragraphs import Paragraph
from cotrail.systems.settings import IRCoTSettings, RetrievalSettings

_ARITHMETIC = re.compile(r"(\d[\d,]*\.?\d+|\d+) [+-] (\d[\d,]*\.?\d+|\d+) = (\d[\d,]*\.?\d+|\d+)")


def collect(
    collected: tuple[Paragraph, ...], found: Result | tuple[Result, ...], settings: RetrievalSettings
) -> tuple[Paragraph, ...]:
    """Adds what a search found, in rank order, up to the limit.

    Skipped are paragraphs of too many words and those whose title and text are both much like one already there.
    """
    assert isinstance(found, Retrieved)  # noqa: S101 - what a Retrieve is answered with
    for hit in found.hits:
        paragraph = hit.paragraph
        if len(collected) >= settings.max_paragraphs:
            break
        if paragraph.text.count(" ") >= settings.max_paragraph_words:
            continue
        if _is_duplicate(paragraph, collected, settings):
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


def _alike(one: Paragraph, other: Paragraph, similarity: float) -> bool:
    return (
        fuzz.ratio(one.title, other.title, score_cutoff=similarity) >= similarity
        and fuzz.ratio(one.text, other.text, score_cutoff=similarity) >= similarity
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
