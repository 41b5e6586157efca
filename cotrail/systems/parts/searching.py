"""Searches for paragraphs as today's systems make them: the best few for a query, shown in the system's words."""

from collections.abc import Iterable

from msgspec import Struct

from cotrail.common.humanize import Positive
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.prompts import Shown
from cotrail.core.questions import Paragraph
from cotrail.core.results import Retrieved
from cotrail.core.system import Part, expect
from cotrail.systems.parts.steps import all_of

MOST_QUERY_WORDS = 100
"""How many words of a query are searched for: search engines refuse longer ones than a few hundred."""


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Searches."""

    count: Positive = 5
    """Paragraphs a search (k)."""

    paragraph_words: Positive = 350
    """A paragraph is cut to this many words in prompts."""

    corpus: str = ""
    """Which of the run's corpora is searched; the first unless given."""

    @property
    def most_words(self) -> int:
        """The words that what one search finds has in a prompt at most."""
        return self.count * self.paragraph_words


def query_words(query: str) -> str:
    """A query as it is searched for: in one line, and not longer than search engines take."""
    return " ".join(query.split()[:MOST_QUERY_WORDS])


def search(query: str, settings: SearchSettings) -> Retrieve:
    """The search for a query."""
    return Retrieve(query=query_words(query), count=settings.count, corpus=settings.corpus)


def found(query: str, settings: SearchSettings) -> Part[tuple[Paragraph, ...]]:
    """The paragraphs that a query finds; none are searched for where it has no words."""
    step = search(query, settings)
    return expect((yield step), Retrieved).paragraphs if step.query else ()


def each_found(queries: Iterable[str], settings: SearchSettings) -> Part[tuple[tuple[Paragraph, ...], ...]]:
    """The paragraphs that each of these queries finds, all searched for at once."""
    searches = tuple(search(each, settings) for each in queries)
    results = iter((yield from all_of((each for each in searches if each.query), Retrieved)))
    return tuple(next(results).paragraphs if each.query else () for each in searches)


def page_of(title: str, settings: SearchSettings) -> Part[tuple[Paragraph, ...]]:
    """The paragraphs of the page of that title, or else of the one whose title is most like it; none without any."""
    page = expect((yield Open(title=title, corpus=settings.corpus)), Retrieved).paragraphs
    query = query_words(title)
    if page or not query:
        return page
    like = Retrieve(query=query, count=1, field="title", corpus=settings.corpus)
    nearest = expect((yield like), Retrieved).paragraphs
    if not nearest:
        return ()
    return expect((yield Open(title=nearest[0].title, corpus=settings.corpus)), Retrieved).paragraphs


def shown(paragraphs: Iterable[Paragraph], form: str, settings: SearchSettings, yields: int = 1) -> tuple[Shown, ...]:
    """Paragraphs in this form, in which `{number}` is the rank of each; form and yields: see `Shown`."""
    return tuple(
        Shown(paragraph=each, form=form.replace("{number}", str(number)), words=settings.paragraph_words, yields=yields)
        for number, each in enumerate(paragraphs, start=1)
    )
