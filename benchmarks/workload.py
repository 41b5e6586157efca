"""The workload of all contenders: a model and a search that cost nothing, so that only orchestration is measured.

Every question gets its own sentences and finds paragraphs that hardly any other question finds, as in a corpus of
millions: content stored for one question saves next to no work for another.
"""

from zlib import crc32

from benchmarks import model_calls
from benchmarks.costless import ANSWER, WORDS
from cotrail.core.questions import Hit, Paragraph

__all__ = ["ANSWER", "SENTENCES", "answer", "question", "search", "sentence"]

SENTENCES = (
    "The bridge of {builder} was built in one year.",
    "In that year {builder} lived in one town.",
    f"So the answer is: {ANSWER}.",
)
TOWNS = 5_000_000
"""Number of paragraphs that can be found: about as many as HotpotQA's corpus has."""

HITS = 4
"""Paragraphs that a search finds."""

STRIDE = 1_000_003
"""Distance of these in the corpus, so that neighbouring queries share none."""


def question(number: int) -> str:
    """The question of that number."""
    return f"Where was builder {number} born?"


def sentence(asked: str, position: int) -> str:
    """The sentence of a question's chain at that position, from 0; the last states the answer."""
    model_calls.call(asked, position)
    return SENTENCES[position].format(builder=asked.removeprefix("Where was ").removesuffix(" born?"))


def answer(asked: str) -> str:
    """The answer to a question, by a call of its own after all sentences."""
    model_calls.call(asked, len(SENTENCES))
    return ANSWER


def search(query: str) -> tuple[Hit, ...]:
    """Four paragraphs of about eighty words; of all that a thousand questions find, few are found twice."""
    first = crc32(query.encode())
    found = [_town((first + rank * STRIDE) % TOWNS) for rank in range(HITS)]
    return tuple(Hit(paragraph=town, rank=rank, score=9.0 - rank) for rank, town in enumerate(found, 1))


def _town(number: int) -> Paragraph:
    return Paragraph(id=f"p{number}", title=f"Town number {number}", text=f"{number * number} {number}. " + WORDS * 4)
