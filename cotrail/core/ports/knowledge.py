"""Port of knowledge sources other than a corpus of paragraphs."""

from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct

from cotrail.core.paragraphs import Hit, Paragraph

Source = Literal["wikidata", "wordnet", "conceptnet", "table"]
"""The knowledge sources; see `cotrail.engines.knowledge`."""

LIMIT = 100
"""The most sentences that a look-up returns.

All of them are compared with every sentence of every chain, and one is kept: seldom what shares the fewest words or has
the weakest relation. A country alone has thousands of dated statements.
"""


class Knowledge(Protocol):
    """One source of knowledge. Safe for many threads."""

    @property
    def revision(self) -> str:
        """The source's name and the digest of everything that decides what is found."""

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:
        """Sentences that are known of the text, the best first, equal scores by id. They have no titles.

        other: a second text, for sources that connect the words of two: those of a premise with a hypothesis's.
        """


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence that a source knows; `id` is its name there, and a higher score is better."""

    id: str
    text: str
    score: float


def ranked(sentences: Iterable[Sentence]) -> tuple[Hit, ...]:
    """The best of the sentences, each text once, under the first of its ids."""
    best: dict[str, Sentence] = {}
    for sentence in sorted(sentences, key=lambda sentence: (-sentence.score, sentence.id)):
        best.setdefault(sentence.text, sentence)
    return tuple(
        Hit(paragraph=Paragraph(id=each.id, title="", text=each.text), rank=rank, score=each.score)
        for rank, each in enumerate(list(best.values())[:LIMIT], start=1)
    )
