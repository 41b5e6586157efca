"""Ports of what is searched: search engines and knowledge sources."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec
from msgspec import Struct, structs

from cotrail.core.questions import Hit, Paragraph
from cotrail.errors import StepError

Scope = Literal["only", "after"]
"""Use of titles in a search: `only` searches their paragraphs, `after` filters the best `count` of a search (as
IRCoT's released code does)."""

Options = TypeVar("Options", bound=Struct)


class SearchRequest(Struct, frozen=True, kw_only=True):
    """What a search is for.

    query: in plain words; an empty one finds nothing. count: the most paragraphs to find.
    titles: where given, only paragraphs of these titles, as `scope` says.
    options: those that aren't at the defaults of the retriever's own type of options, see `options_as`.
    """

    query: str
    count: int
    titles: tuple[str, ...] = ()
    scope: Scope = "only"
    options: dict[str, Any] = {}

    def options_as(self, type_: type[Options]) -> Options:
        """The options as a retriever reads them; raises StepError for one that it lacks or that is out of bounds."""
        if unknown := self.options.keys() - set(type_.__struct_fields__):
            raise StepError(f"the corpus's retriever has no option {min(unknown)!r}; take it out of the search")
        try:
            return msgspec.convert(self.options, type_)
        except msgspec.ValidationError as error:
            raise StepError(f"an option of the search can't be used: {error}; correct it") from error


class Retriever(Protocol):
    """Searches one corpus."""

    @property
    def revision(self) -> str:
        """The digest of everything that decides a search's result: paragraphs, analyzer, ranking parameters."""

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs, the best first, equal scores by paragraph id.

        Options are read first, so that an empty query tells whether the corpus has them.
        Raises StepError, TransientStepError, CorpusChangedError, and UnavailableError where the corpus is on a server
        that is away or refuses requests.
        """


class Corpus(Retriever, Protocol):
    """A corpus whose paragraphs can also be looked up."""

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids, by id; unknown ids are left out."""

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""


@runtime_checkable
class WholeCorpus(Protocol):
    """A corpus that can be read as a whole."""

    def every(self) -> Iterator[Paragraph]:
        """All paragraphs, in the order of the index; raises StepError where the index is one that can't."""


def picked(hits: Iterable[Hit], titles: Iterable[str]) -> tuple[Hit, ...]:
    """The hits whose paragraphs have one of these titles in any case, with new ranks."""
    lowered = {title.strip().lower() for title in titles}
    return numbered(hit for hit in hits if hit.paragraph.title.strip().lower() in lowered)


def numbered(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits with their ranks in this order."""
    return tuple(structs.replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))


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
