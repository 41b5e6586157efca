"""Search-R1's form of retrieval servers: corpora behind such servers, and answers to those who ask in this form.

`POST /retrieve {queries, topk, return_scores}` answers `{"result": [[{"document": {"id", "contents"}, "score"}]]}`, one
list for each query, the best first; without scores, documents alone. The first line of `contents` is the title, often
in quotes (`search_r1/search/retrieval_server.py` in Search-R1's code).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, ClassVar, TypeVar
from weakref import finalize

import msgspec
from msgspec import Meta, Struct

from cotrail.common.optional_packages import installed_with
from cotrail.common.printable_text import storable
from cotrail.common.refusals import refusal
from cotrail.core.ports.retriever import Retriever, SearchRequest, numbered, picked
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval.manifest import IndexManifest, Ranking, Revision
from cotrail.engines.retrieval.search_server import Bm25Options, RemoteServer, WebSearch, best
from cotrail.engines.retrieval.tool_texts import Document, document_of, paragraph_of
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import InputError, StepError

# What a server of ours answers.

MOST_QUERIES, MOST_HITS, LONGEST_QUERY = 1_000, 1_000, 100_000
"""Queries of a request, hits of a query, and characters of a query at most."""

USUAL_HITS = 3
"""Hits of a query where a request doesn't say, as of Search-R1's server."""


class RetrieveRequest(Struct, frozen=True, kw_only=True):
    """What a server is asked; return_scores: whether hits are documents with scores, or documents alone."""

    queries: Annotated[list[Annotated[str, Meta(max_length=LONGEST_QUERY)]], Meta(max_length=MOST_QUERIES)]
    topk: Annotated[int, Meta(ge=1, le=MOST_HITS)] | None = None
    return_scores: bool = False


def read_request(content: bytes) -> RetrieveRequest:
    """The request in the body of a POST; raises InputError, which says what to correct."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f'the body isn\'t JSON ({error}); send {{"queries": ["..."], "topk": 3}}') from error
    try:
        return msgspec.convert(value, RetrieveRequest)
    except msgspec.ValidationError as error:
        raise InputError(f"{refusal(error, RetrieveRequest, value)}; correct the request") from error


def answer(corpus: Retriever, request: RetrieveRequest, threads: Executor) -> bytes:
    """The answer, as JSON; its queries are searched for by several threads at once. Raises as `Retriever.search`."""
    count = request.topk or USUAL_HITS
    found = threads.map(corpus.search, (SearchRequest(query=each, count=count) for each in request.queries))
    return msgspec.json.encode({"result": [[_given(hit, request) for hit in hits] for hits in found]})


def _given(hit: Hit, request: RetrieveRequest) -> Any:
    document = document_of(hit.paragraph)
    return {"document": document, "score": hit.score} if request.return_scores else document


# A corpus behind a server.


class _Address(ServerAddress, frozen=True, kw_only=True):
    file: ClassVar[str] = "search.toml"


DECISIVE = ("store", "read", "private_addresses", "page_bytes", "page_characters")
"""What decides, of the web's settings, what is found."""


class _Found(Struct, frozen=True, kw_only=True):
    """A hit: a document and its score, if it has one, or the document's own fields."""

    document: Document | None = None
    score: float | None = None
    id: str | int | None = None
    contents: str | None = None


class _Answer(Struct, frozen=True):
    result: list[list[_Found]]


def manifest_of(server: RemoteServer) -> IndexManifest:
    """What is known of a server without asking it."""
    settings: dict[str, Any] = {}
    if isinstance(server, WebSearch):
        analyzer = f"the live web, searched by {server.provider} at {server.url}"
        settings = {name: getattr(server, name) for name in DECISIVE}
    else:
        analyzer = f"a retrieval server's own: {server.revision or server.place}"
    revision, engine = str(Revision(Ranking(analyzer=analyzer), settings)), server.provider
    return IndexManifest(
        revision=revision, paragraphs=None, created_by={}, engine=engine, analyzer=analyzer, settings=settings
    )


Answer = TypeVar("Answer")


def address_of(name: str, server: RemoteServer) -> ServerAddress:
    """Where a corpus is asked, and with which key."""
    key, seconds = server.key_variable, server.timeout_seconds
    return _Address(url=server.url, model=name, key_variable=key, timeout_seconds=seconds)


class RemoteCorpus:
    """A corpus behind a server; safe for many threads, and no request is sent before the first search.

    A search is a request of its own, so that no score depends on what else is asked. Nothing can be looked up.
    connection: what its requests go through, in a thread of its own. Raises NotInstalledError.
    """

    def __init__(self, name: str, server: RemoteServer, connection: Any) -> None:
        with installed_with("client"):
            from cotrail.engines.language_models.served.event_loop import EventLoopThread
        self.revision = manifest_of(server).revision
        self._name, self._server = name, server
        self._event_loop = EventLoopThread(connection)
        # The thread would otherwise outlive the corpus.
        finalize(self, self._event_loop.close)

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs in the server's order; see `Retriever`. Of titles, only the scope `after` is possible.

        Raises UnavailableError where the server is away, StepError where it answers in another form, and as
        `ServerClient.ask`.
        """
        options = request.options_as(Bm25Options)
        if options.field == "title" or (request.titles and request.scope == "only"):
            raise self._refused("searches of titles", "search titles and texts")
        if options.filter:
            raise self._refused("filters", "leave it out")
        if request.count < 1 or not request.query.strip():
            return ()
        hits = best(partial(self._ranked, request.query), request.count, distinct=options.distinct)
        return picked(hits, request.titles) if request.titles else hits

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """Nothing where nothing is looked up; raises StepError for ids."""
        if ids:
            raise self._refused("look-ups of paragraphs by id", "give titles and texts instead of ids")
        return {}

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """Raises StepError."""
        raise self._refused(f"look-ups of titles ({title!r})", "take a system that only searches")

    def interrupt(self) -> None:
        """Ends every search, now and from now on, with Interrupted."""
        self._event_loop.interrupt()

    def _ranked(self, query: str, count: int) -> tuple[Hit, ...]:
        """The best paragraphs, as they are recorded."""
        raise NotImplementedError

    def _refused(self, what: str, instead: str) -> StepError:
        return StepError(
            f"the corpus {self._name!r} is behind a server, which takes no {what}: {instead}, or index its paragraphs "
            "with `cotrail index`"
        )


class AskedCorpus(RemoteCorpus):
    """A corpus behind a server that is asked over HTTP.

    headers: of each request, by its key; a bearer token without it. Raises BlockedError where its key isn't set.
    """

    def __init__(self, name: str, server: RemoteServer, headers: Callable[[str], dict[str, str]] | None = None) -> None:
        with installed_with("client"):
            from cotrail.engines.language_models.served.client import ServerClient
            from cotrail.engines.language_models.served.protocols.delta import bearer
        self._client = ServerClient(address_of(name, server), headers or bearer)
        super().__init__(name, server, self._client)

    def _asked(self, body: dict[str, Any], form: type[Answer], method: str = "POST") -> Answer:
        content = self._event_loop.run(partial(self._client.ask, self._server.url, body, method))
        try:
            return msgspec.json.decode(content, type=form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._malformed(str(error)) from None

    def _malformed(self, problem: str) -> StepError:
        return StepError(
            f"{self._server.url} doesn't answer in the form of {self._server.provider}: {problem}; correct the server, "
            f"or `url` in [{self._server.table}.{self._name}] of search.toml"
        )


class ServedCorpus(AskedCorpus):
    """A corpus behind a server that answers in Search-R1's form."""

    def _ranked(self, query: str, count: int) -> tuple[Hit, ...]:
        body = {"queries": [storable(query)], "topk": count, "return_scores": True}
        result = self._asked(body, _Answer).result
        if len(result) != 1:
            raise self._malformed(f"it was sent one query, and `result` has {len(result)} lists")
        hits = [self._hit(found, rank) for rank, found in enumerate(result[0][:count], start=1)]
        if place := next((hit.rank for last, hit in pairwise(hits) if hit.score > last.score), None):
            raise self._malformed(f"hit {place} has a higher score than the one before it, and the best come first")
        distinct = {hit.paragraph.id: hit for hit in reversed(hits)}.values()
        return numbered(sorted(distinct, key=lambda hit: (-hit.score, hit.paragraph.id)))

    def _hit(self, found: _Found, rank: int) -> Hit:
        """A hit of a server; one without a score has 1 / rank."""
        score = 1 / rank if found.score is None else found.score
        if not isfinite(score):
            raise self._malformed(f"the score of hit {rank} isn't a finite number")
        if found.document is None and found.contents is None:
            raise self._malformed(f"hit {rank} has neither `document` nor `contents`")
        document = found.document or Document(id=found.id, contents=found.contents or "")
        return Hit(paragraph=paragraph_of(document), rank=rank, score=score)
