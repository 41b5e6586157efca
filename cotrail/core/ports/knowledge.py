"""Port of knowledge sources."""

from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct

from cotrail.core.paragraphs import Hit, Paragraph

Source = Literal["wikidata", "wordnet", "conceptnet", "table"]
"""Knowledge sources, which are no corpora of paragraphs; see `cotrail.engines.knowledge`."""

MOST_SENTENCES = 100
"""The most sentences that a look-up returns.

Each of them is compared with every sentence of every chain, and one is kept: rarely one that shares the fewest words or
has the weakest relation. A country alone has thousands of dated statements.
"""


class Knowledge(Protocol):
    """One knowledge source; safe to call from many threads at once."""

    @property
    def revision(self) -> str:
        """The source's name and the digest of everything that decides what is found."""

    def lookup(self, text: str, other: str) -> tuple[Hit, ...]:
        """Sentences that the source knows about the text, the best first, equal scores by id. They have no titles.

        other: a second text, for sources that connect the words of two: a premise's with a hypothesis's.
        """


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence that a source knows; `id` is its name there, and a higher score is better."""

    id: str
    text: str
    score: float


def ranked(sentences: Iterable[Sentence]) -> tuple[Hit, ...]:
    """The best `LIMIT` sentences as hits; equal texts count once, under the first of their ids."""
    best: dict[str, Sentence] = {}
    for sentence in sorted(sentences, key=lambda sentence: (-sentence.score, sentence.id)):
        best.setdefault(sentence.text, sentence)
    return tuple(
        Hit(paragraph=Paragraph(id=each.id, title="", text=each.text), rank=rank, score=each.score)
        for rank, each in enumerate(list(best.values())[:MOST_SENTENCES], start=1)
    )
