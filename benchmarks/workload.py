"""What contenders are compared by: a model and a search that cost nothing, so that what remains is orchestration.

Every question writes sentences and finds paragraphs of its own, as in a corpus of millions: what is stored for one
spares no work for another.
"""

from zlib import crc32

from cotrail.paragraphs import Hit, Paragraph

SENTENCES = (
    "The bridge of {builder} was built in one year.",
    "In that year {builder} lived in one town.",
    "So the answer is: Grayle.",
)
ANSWER = "Grayle"
TOWNS = 5_000_000
"""How many paragraphs there are to find: about what HotpotQA's corpus has."""

HITS = 4
STRIDE = 1_000_003
WORDS = "The town lies where the river meets the sea, and its bridge has carried the coast road since it was built. "


def question(number: int) -> str:
    """The question of that number."""
    return f"Where was builder {number} born?"


def sentence(asked: str, position: int) -> str:
    """The sentence of a question's chain at that position, from 0; the last states the answer."""
    return SENTENCES[position].format(builder=asked.removeprefix("Where was ").removesuffix(" born?"))


def search(query: str) -> tuple[Hit, ...]:
    """Four paragraphs of some eighty words, which only this query finds."""
    first = crc32(query.encode())
    found = [_town((first + rank * STRIDE) % TOWNS) for rank in range(HITS)]
    return tuple(Hit(paragraph=town, rank=rank, score=9.0 - rank) for rank, town in enumerate(found, 1))


def _town(number: int) -> Paragraph:
    return Paragraph(id=f"p{number}", title=f"Town number {number}", text=f"{number * number} {number}. " + WORDS * 4)
