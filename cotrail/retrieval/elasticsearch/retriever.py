"""Searching a corpus of a search server."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.actions import Field, Scope
from cotrail.errors import CorpusChangedError, StepError, TransientStepError
from cotrail.paragraphs import Hit, Paragraph
from cotrail.retrieval.elasticsearch.client import (
    BUSY,
    BusyError,
    Client,
    Fault,
    FaultyError,
    MissingError,
    RefusedError,
)
from cotrail.retrieval.elasticsearch.combining import Combiner
from cotrail.retrieval.elasticsearch.index import Located, locate
from cotrail.retrieval.retriever import picked

MOST = 10_000
"""How many paragraphs a search returns at most, as the servers have it by default; more than any page has."""

Body = dict[str, Any]


class _Document(Struct, frozen=True):
    paragraph: Paragraph = field(name="_source")
    sort: list[Any] = []


class _Hits(Struct, frozen=True):
    hits: list[_Document]


class _Shards(Struct, frozen=True):
    failed: int = 0


class _Found(Struct, frozen=True):
    """The answer to a search, or what was wrong."""

    hits: _Hits = _Hits([])
    shards: _Shards = field(name="_shards", default=_Shards())
    timed_out: bool = False
    status: int = 200
    error: Fault | None = None


class _FoundAll(Struct, frozen=True):
    responses: list[_Found]


class ElasticsearchRetriever:
    """Searches one corpus of a server. Safe for many threads, whose searches become one request.

    A paragraph's score is BM25 of its title plus BM25 of its text, each word of the query a clause of its own.
    """

    def __init__(self, client: Client, alias: str, located: Located) -> None:
        self._client = client
        self._alias = alias
        self._index = located.name
        self.manifest = located.manifest
        self._searches: Combiner[Body, _Found] = Combiner(self._search_all)

    @classmethod
    def opened(cls, client: Client, alias: str) -> "ElasticsearchRetriever | None":
        """The retriever for the index that an alias leads to; None where there is no such alias."""
        located = locate(client, alias)
        return None if located is None else cls(client, alias, located)

    @property
    def revision(self) -> str:
        """The digest of everything that decides a search's result."""
        return self.manifest.revision

    def search(
        self, query: str, count: int, titles: tuple[str, ...] = (), *, scope: Scope = "only", field: Field = "all"
    ) -> tuple[Hit, ...]:
        """The best `count` paragraphs, the best first, equal scores by paragraph id.

        The query is plain words. titles: where given, only paragraphs of these titles, as in every retriever.
        UnavailableError: the server doesn't answer, or has too much to do. TransientStepError: it answers with an error
        or a part only. StepError: it refuses the query, as it does with one of more words than its
        `indices.query.bool.max_clause_count`. CorpusChangedError: the corpus has been indexed anew meanwhile.
        """
        if count < 1 or not query.strip():
            return ()
        fields = ("title",) if field == "title" else ("title", "text")
        matches = _matches(_valid(query), fields)
        if titles and scope == "after":
            return picked(self._ranked(_named(matches, [_valid(title) for title in titles]), count), titles)
        return self._ranked(_titled(matches, [_valid(title) for title in titles]) if titles else matches, count)

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """Those of the paragraphs that are there, by id."""
        parts = [list(ids[start : start + MOST]) for start in range(0, len(ids), MOST)]
        return {each.id: each for part in parts for each in self._looked_up("id", part)}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""
        return tuple(self._looked_up("title.whole", [_valid(title)]))

    def _looked_up(self, field: str, values: list[str]) -> Iterator[Paragraph]:
        query = {"constant_score": {"filter": {"terms": {field: values}}}}
        found = self._client.ask(
            "POST", f"/{self._index}/_search", _Found, {"size": MOST, "sort": [{"id": "asc"}], "query": query}
        )
        return (document.paragraph for document in found.hits.hits)

    def _ranked(self, query: Body, count: int) -> tuple[Hit, ...]:
        found = self._found(
            {
                "query": query,
                "size": min(count, MOST),
                "sort": [{"_score": "desc"}, {"id": "asc"}],
                "track_total_hits": False,
            }
        )
        return tuple(
            Hit(paragraph=document.paragraph, rank=rank, score=document.sort[0])
            for rank, document in enumerate(found.hits.hits, start=1)
        )

    def _found(self, body: Body) -> _Found:
        try:
            return self._found_somewhere(body)
        except (FaultyError, MissingError) as error:
            raise TransientStepError(str(error)) from error
        except RefusedError as error:
            raise StepError(str(error)) from error

    def _found_somewhere(self, body: Body) -> _Found:
        try:
            return self._searches.do(body)
        except MissingError:
            self._locate_again()
            return self._searches.do(body)

    def _locate_again(self) -> None:
        """The same paragraphs indexed again are the same corpus."""
        located = locate(self._client, self._alias)
        if located is None or located.manifest.revision != self.revision:
            raise CorpusChangedError(
                f"the index {self._alias} was built anew or removed, and had revision {self.revision}; "
                "index the former files again, then `cotrail resume RUN`"
            )
        self._index = located.name

    def _search_all(self, bodies: Sequence[Body]) -> list[_Found | Exception]:
        lines = b"".join(b"{}\n" + msgspec.json.encode(body) + b"\n" for body in bodies)
        found = self._client.ask("POST", f"/{self._index}/_msearch", _FoundAll, lines)
        return [_checked(each, self._client.said(each.error)) for each in found.responses]


def _checked(found: _Found, said: str) -> _Found | Exception:
    """What was found, unless it isn't all there is; said: what the server says is wrong, if it does."""
    if found.status == 404:
        return MissingError(f"the search server no longer has the index ({said})")
    if found.error is not None and found.status in {400, 413}:
        return StepError(f"the search server refuses the query ({said}); shorten it")
    if found.error is not None and found.status in BUSY:
        return BusyError(f"the search server can't search now ({said}); its log says more")
    if found.error is not None or found.timed_out or found.shards.failed:
        reason = "a shard failed or was late" if found.error is None else said
        return TransientStepError(f"the search server found only a part ({reason}); its log says more")
    return found


def _matches(query: str, fields: Sequence[str]) -> Body:
    return {"bool": {"should": [{"match": {field: {"query": query}}} for field in fields]}}


def _titled(matches: Body, titles: Sequence[str]) -> Body:
    return {"bool": {"must": [matches], "filter": [{"terms": {"title.whole": titles}}]}}


def _named(matches: Body, titles: Sequence[str]) -> Body:
    """Adds the titles' words to the query: one title's must be met, if it has any, several only count."""
    if len(titles) == 1:
        return {"bool": {"must": [_title(titles[0], without_words="all")], "should": [matches]}}
    return {"bool": {"should": [matches, *(_title(title, without_words="none") for title in titles)]}}


def _title(title: str, *, without_words: str) -> Body:
    """without_words: which paragraphs a title of stop words alone matches."""
    return {"match": {"title": {"query": title, "zero_terms_query": without_words}}}


def _valid(text: str) -> str:
    """The text as valid UTF-8."""
    return text.encode(errors="replace").decode()
