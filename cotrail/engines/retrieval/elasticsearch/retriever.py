"""Searches a corpus on a search server.

Documents of an index as paragraphs.

Normalization of scores to one scale for all servers.

Lucene 8 dropped the constant factor k1 + 1 from BM25. Elasticsearch and OpenSearch up to 2 kept it, OpenSearch 3
doesn't have it. A server's explanation of a score shows the factor in every version.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from cotrail.core.ports.retriever import SearchRequest, picked
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.elasticsearch.client import (
    BUSY_STATUSES,
    BusyError,
    ElasticsearchClient,
    Fault,
    FaultyError,
    MissingError,
    RefusedError,
)
from cotrail.engines.retrieval.elasticsearch.index import Located, definition_of, sequence_numbers
from cotrail.engines.retrieval.manifest import IndexManifest
from cotrail.engines.retrieval.search_server import Bm25Options, Fields, best, check_filter
from cotrail.errors import CorpusChangedError, StepError, TransientStepError

# Flat combining: micro-batching of concurrent requests without a thread of its own.

Item = TypeVar("Item")
Done = TypeVar("Done")


class Combiner(Generic[Item, Done]):
    """Calls `work` with all items that arrived during its previous call; an item that arrives alone doesn't wait.

    work: returns a result or an error for each item, in their order; an exception counts for all items.
    It runs in the thread of one of the waiting callers, so that there is no thread to stop.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Done | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[Item, Future[Done]]] = []
        self._handing_in = threading.Lock()
        self._working = threading.Lock()

    def do(self, item: Item) -> Done:
        """Hands an item in and waits for its result; raises its error."""
        future: Future[Done] = Future()
        with self._handing_in:
            self._waiting.append((item, future))
        with self._working:
            # The previous holder of the lock may have done this item along with its own.
            if not future.done():
                self._do_all()
        return future.result()

    def _do_all(self) -> None:
        with self._handing_in:
            # Items that arrive from now on make up the next batch.
            batch, self._waiting = self._waiting, []
        try:
            results = self._work([item for item, _ in batch])
            if len(results) != len(batch):
                raise TransientStepError(
                    f"{len(batch)} requests were sent at once, and {len(results)} answers came back"
                )
        except BaseException as error:  # noqa: BLE001 - it is raised by all callers of these items
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class Explanation(Struct, frozen=True):
    """A server's explanation of a score."""

    value: float
    description: str
    details: "list[Explanation]" = []

    def __iter__(self) -> Iterator["Explanation"]:
        """The explanation and all its parts."""
        yield self
        for detail in self.details:
            yield from detail


def missing_factor(explanation: Explanation) -> float:
    """The factor to multiply scores by so that they include k1 + 1; 1 where they do or aren't BM25."""
    for each in explanation:
        parts = {part.description.partition(",")[0]: part for part in each.details}
        if {"idf", "tf"} <= parts.keys():
            k1 = next((part.value for part in parts["tf"] if part.description.startswith("k1,")), 0.0)
            # The score is idf * tf, on some servers times k1 + 1; it is rounded, so that the nearer of the two counts.
            factor = each.value / (parts["idf"].value * parts["tf"].value)
            return 1 + k1 if abs(factor - 1) < abs(factor - (1 + k1)) else 1.0
    return 1.0


def paragraph(id_: str, source: dict[str, Any], fields: Fields) -> Paragraph:
    """The paragraph in a document; a missing title or text is empty. Raises StepError where it has no id."""
    identifier = id_ if fields.id == "_id" else _text(_at(source, fields.id))
    if not identifier:
        raise StepError(f"the document {id_!r} has no {fields.id}; correct search.toml, or the document")
    return Paragraph(id=identifier, title=_text(_at(source, fields.title)), text=_text(_at(source, fields.text)))


def _at(value: Any, path: str) -> Any:
    """The value at a dotted path. Names may contain dots themselves, and a multi-field has the value of its field."""
    if not isinstance(value, dict) or not path:
        return value
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return _at(value.get(first), rest)


def _text(value: Any) -> str:
    """The value as text; several values are joined, as a search treats them."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return "" if value is None else str(value)


MOST_HITS = 10_000
"""The most paragraphs of a search, which is the servers' default limit; more than any page has."""

QueryBody = dict[str, Any]

Scored = tuple[float, Paragraph]


class _Document(Struct, frozen=True):
    id: str = field(name="_id")
    source: dict[str, Any] = field(name="_source", default={})
    score: float | None = field(name="_score", default=None)
    sort: list[Any] = []
    explanation: Explanation | None = field(name="_explanation", default=None)


class _Hits(Struct, frozen=True):
    hits: list[_Document]


class _Shards(Struct, frozen=True):
    failed: int = 0


class _Found(Struct, frozen=True):
    """The response to a search, or its error."""

    hits: _Hits = _Hits([])
    shards: _Shards = field(name="_shards", default=_Shards())
    timed_out: bool = False
    status: int = 200
    error: Fault | None = None


class _FoundAll(Struct, frozen=True):
    responses: list[_Found]


class ElasticsearchRetriever:
    """Searches one corpus of a server. Safe for many threads, whose searches are batched into one request.

    A paragraph's score is the sum of the BM25 scores of its title and its text; each word of the query is a clause.
    """

    def __init__(self, client: ElasticsearchClient, locate: Callable[[], Located | None], located: Located) -> None:
        self._client = client
        self._locate = locate
        self._located = located
        self._factor: float | None = None
        self._searches: Combiner[QueryBody, _Found] = Combiner(self._search_all)

    @property
    def manifest(self) -> IndexManifest:
        """The manifest of the index."""
        return self._located.manifest

    @property
    def revision(self) -> str:
        return self.manifest.revision

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs for a query of plain words, the best first, equal scores by paragraph id.

        Raises UnavailableError where the server doesn't respond or is too busy, TransientStepError where it responds
        with an error or a partial result, StepError where it refuses the query, for example one of more words than its
        `indices.query.bool.max_clause_count`, and CorpusChangedError where the corpus was rebuilt.
        """
        options, query, titles = request.options_as(Bm25Options), request.query, request.titles
        chosen = self.filtered(options.filter) if options.filter else None
        if request.count < 1 or not query.strip():
            return ()
        names, after = self._located.fields, bool(titles) and request.scope == "after"
        matches = _matches(_valid(query), (names.title,) if options.field == "title" else (names.title, names.text))
        if titles:
            matches = (
                _named(matches, names.title, [_valid(title) for title in titles])
                if after
                else {"bool": {"must": [matches], "filter": [self.titles_filter(titles)]}}
            )
        if chosen is not None:
            matches = {"bool": {"must": [matches], "filter": [chosen]}}
        hits = best(partial(self._ranked, matches), request.count, distinct=options.distinct)
        return picked(hits, titles) if after else hits

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        parts = [list(ids[start : start + MOST_HITS]) for start in range(0, len(ids), MOST_HITS)]
        return {each.id: each for part in parts for each in self._looked_up(self._located.fields.id, part)}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        return tuple(sorted(self._looked_up(self._whole_title(), [_valid(title)]), key=lambda each: each.id))

    def documents(self, body: QueryBody) -> list[tuple[Paragraph, dict[str, Any]]]:
        """What a search of this body finds, the best first, with its whole documents; raises what `search` does."""
        hits = self._found(body | {"track_total_hits": False}).hits.hits
        return [(self._paragraph(document), document.source) for document in hits]

    def titles_filter(self, titles: Sequence[str]) -> QueryBody:
        """The query for paragraphs of exactly these titles."""
        return {"terms": {self._whole_title(): [_valid(title) for title in titles]}}

    def filtered(self, filter_: str) -> QueryBody:
        """The query for paragraphs that a filter lets through; of an index of others it may name any field."""
        fields = self.manifest.settings.get("fields", {})
        checked = check_filter(filter_, fields) if self.manifest.engine else filter_
        return {"query_string": {"query": checked, "fields": ["id"], "analyze_wildcard": False}}

    def _whole_title(self) -> str:
        field = self._located.fields.whole_title
        if field is None:
            raise StepError(
                f"the index {self._located.name} can't be searched for titles: search.toml names no field of the "
                "type keyword as its `whole_title`"
            )
        return field

    def _looked_up(self, field: str, values: list[str]) -> Iterator[Paragraph]:
        query = {"constant_score": {"filter": {"terms": {field: values}}}}
        name = self._located.name
        response = self._client.ask(lambda api: api.search(index=name, query=query, size=MOST_HITS), _Found)
        return (self._paragraph(document) for document in response.hits.hits)

    def _paragraph(self, document: _Document) -> Paragraph:
        return paragraph(document.id, document.source, self._located.fields)

    def _ranked(self, query: QueryBody, count: int) -> tuple[Hit, ...]:
        factor = self._factor  # another thread may set it meanwhile
        best = self._best(_scaled(query, factor or 1), min(count, MOST_HITS))
        # Any hit's explanation shows the factor; it takes a second search, once for each retriever.
        if best and factor is None:
            factor = self._factor = self._missing_factor(query)
            best = self._best(_scaled(query, factor), min(count, MOST_HITS)) if factor != 1 else best
        return tuple(Hit(paragraph=each, rank=rank, score=score) for rank, (score, each) in enumerate(best, start=1))

    def _missing_factor(self, query: QueryBody) -> float:
        response = self._found({"query": query, "size": 1, "explain": True, "_source": False})
        explanations = [document.explanation for document in response.hits.hits]
        return missing_factor(explanations[0]) if explanations and explanations[0] else 1.0

    def _best(self, query: QueryBody, count: int) -> list[Scored]:
        """The best paragraphs, equal scores by id."""
        # Counting all hits would keep the server from skipping those that can't be among the best.
        body = {"query": query, "track_total_hits": False}
        if self._located.sequence_numbers is None:
            hits = self._found(body | {"size": count, "sort": [{"_score": "desc"}, {"id": "asc"}]}).hits.hits
            return [(document.sort[0], self._paragraph(document)) for document in hits]
        return self._best_by_any_id(body, count)

    def _best_by_any_id(self, body: QueryBody, count: int) -> list[Scored]:
        """The same by `_id`, which servers don't sort by: all hits that tie with the last one are fetched."""
        limit = min(count + 1, MOST_HITS)
        hits = self._found(body | {"size": limit}).hits.hits
        while len(hits) == limit < MOST_HITS and hits[-1].score == hits[count - 1].score:
            limit = min(4 * limit, MOST_HITS)
            hits = self._found(body | {"size": limit}).hits.hits
        scored = [(document.score or 0.0, self._paragraph(document)) for document in hits]
        return sorted(scored, key=lambda each: (-each[0], each[1].id))[:count]

    def _found(self, body: QueryBody) -> _Found:
        try:
            return self._found_somewhere(body)
        except (FaultyError, MissingError) as error:
            raise TransientStepError(str(error)) from error
        except RefusedError as error:
            raise StepError(str(error)) from error

    def _found_somewhere(self, body: QueryBody) -> _Found:
        try:
            return self._searches.do(body)
        except MissingError:
            self._locate_again()
            return self._searches.do(body)

    def _locate_again(self) -> None:
        """Follows the alias to a new index, which is the same corpus if it has the same revision."""
        located = self._locate()
        if located is None or located.manifest.revision != self.revision:
            raise self._changed("was rebuilt or removed", "index the former files again, then `cotrail resume RUN`")
        self._located, self._factor = located, None

    def _changed(self, how: str, remedy: str) -> CorpusChangedError:
        return CorpusChangedError(f"the index {self._located.name} {how}, and had revision {self.revision}; {remedy}")

    def _search_all(self, bodies: Sequence[QueryBody]) -> list[_Found | Exception]:
        located = self._located
        searches = [line for body in bodies for line in ({}, body)]
        # By default each shard scores by its own word counts; this search type sums the counts of all shards first.
        kind = "dfs_query_then_fetch" if located.shards > 1 else None
        responses = self._client.ask(
            lambda api: api.msearch(index=located.name, searches=searches, search_type=kind), _FoundAll
        )
        pinned = located.sequence_numbers
        if pinned is not None and sequence_numbers(self._client, located.name, located.shards) != pinned:
            raise self._changed("was written to", "submit a new run, which takes it as it is now")
        if pinned is not None and definition_of(self._client, located.name) != located.definition:
            how = "was changed (its alias, its fields, its analysis, its synonyms or its ranking)"
            raise self._changed(how, "change it back, or submit a new run, which takes it as it is now")
        return [_checked(each, self._client.said(each.error)) for each in responses.responses]


def _checked(response: _Found, text: str) -> _Found | Exception:
    """The result if it is complete, otherwise the error; text: the server's error message."""
    if response.status == 404:
        return MissingError(f"the search server no longer has the index ({text})")
    if response.error is not None and response.status in {400, 413}:
        return StepError(f"the search server refuses the query ({text}); shorten it")
    if response.error is not None and response.status in BUSY_STATUSES:
        return BusyError(f"the search server can't search now ({text}); its log says more")
    if response.error is not None or response.timed_out or response.shards.failed:
        reason = "a shard failed or was late" if response.error is None else text
        return TransientStepError(f"the search server found only a part ({reason}); its log says more")
    return response


def _scaled(query: QueryBody, factor: float) -> QueryBody:
    return query if factor == 1 else {"bool": query["bool"] | {"boost": factor}}


def _matches(query: str, fields: Sequence[str]) -> QueryBody:
    return {"bool": {"should": [{"match": {field: {"query": query}}} for field in fields]}}


def _named(matches: QueryBody, field: str, titles: Sequence[str]) -> QueryBody:
    """Adds the titles' words to the query: a single title's must match, if it has any, those of several only score."""
    query: QueryBody = {"should": [matches, *(_title(field, title, without_words="none") for title in titles)]}
    if len(titles) == 1:
        query |= {"filter": [_title(field, titles[0], without_words="all")], "minimum_should_match": 1}
    return {"bool": query}


def _title(field: str, title: str, *, without_words: str) -> QueryBody:
    """A query for a title's words; without_words: what a title of stop words alone matches, `all` or `none`."""
    return {"match": {field: {"query": title, "zero_terms_query": without_words}}}


def _valid(text: str) -> str:
    """The text as valid UTF-8."""
    return text.encode(errors="replace").decode()
