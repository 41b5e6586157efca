"""Addresses, credentials and index settings of search servers, and addresses of those that are only searched."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from cotrail.common.log_formatting import Secrets
from cotrail.common.refusals import refusal
from cotrail.common.server_addresses import Address, read_address
from cotrail.common.structs import dotted
from cotrail.common.toml_files import read_toml_or_empty
from cotrail.core.ports.retriever import numbered
from cotrail.core.questions import Hit
from cotrail.engines.retrieval.manifest import checked_name
from cotrail.engines.server_address import VariableName
from cotrail.errors import InputError, StepError

# Filters by metadata of paragraphs, in Lucene's syntax: `year:[2000 TO 2010] AND lang:(en OR de)`.

Kind = Literal["word", "number"]
"""A field's kind: words are compared as they are written, and ordered by their characters."""

FieldKinds = dict[str, Kind]

LONGEST = 10_000
"""Characters of a filter at most."""

TAKEN = frozenset({"id", "title", "text", "whole_title", "paragraph", "embedding", "vector"})
"""Names of fields that indexes have already."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.){0,1000}+"')
_NAMED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]{0,100}+):")
_GIVEN = re.compile(r"(?<![\w.])([a-z][a-z0-9_]{0,63}+):[\[{(<>=\s]{0,9}+([^\W\d]\w{0,99}+)")
_REFUSED = {
    "a filter has no NOT; write `-field:value` behind what is wanted, or behind `*`": re.compile(r"\bNOT\b|!"),
    "a filter has no && and ||; write AND and OR": re.compile(r"&&|\|\|"),
    "a run's filter alone has kinds of questions in braces; write the value itself": re.compile(r"\{[^\W\d]\w{0,99}\}"),
    "a filter has no `?`, `~`, and `*` within words; write them in full, or a range": re.compile(
        r"[?~]|[^\s(\[{:*]\*|\*[^\s)\]}*]"
    ),
}
"""What engines read in different ways, outside of quotation marks, and what to write in its place."""


def check_fields(fields: Mapping[str, Kind]) -> None:
    """Raises InputError for a name that no field can have."""
    for name in fields:
        if name in TAKEN or not _NAME.fullmatch(name):
            raise InputError(
                f"a field can't be named {name!r}: take small letters, digits and _, and no name that paragraphs have"
            )


def check_filter(filter_: str, fields: Mapping[str, Kind]) -> str:
    """The filter; raises StepError where it can't be used: it is too long, or names a field that the index lacks."""
    if len(filter_) > LONGEST:
        raise StepError(f"a filter has {LONGEST:,} characters at most")
    if not filter_.strip():
        raise StepError("the filter is empty; leave it out")
    filter_ = filter_.replace("*:*", "*")
    outside, there = _QUOTED.sub("", filter_), ", ".join(fields) or "none"
    if refused := [advice for advice, pattern in _REFUSED.items() if pattern.search(outside)]:
        raise StepError(refused[0])
    if unknown := [name for name in _NAMED.findall(outside) if name not in fields]:
        raise StepError(
            f"the corpus has no field {unknown[0]!r} to filter by; there are: {there} (`cotrail index --field`)"
        )
    if not fields:
        raise StepError("the corpus has no fields to filter by; index it with `--field NAME`")
    for name, value in _GIVEN.findall(outside):
        if fields[name] == "number":
            raise StepError(f"the field {name!r} has numbers, and {value!r} is none; write a number")
    return filter_


# What searches with BM25 have in common, for every engine.

BUFFER_HITS = 100
"""The number of best paragraphs that are searched for equal texts, as in IRCoT's released code."""


class Bm25Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a search.

    field: what the query is compared with: title and text, or the title alone. distinct: paragraphs of the same text
        count as one, see `best`. filter: what the metadata of hits has to be, see `filters`; empty for anything.
    """

    field: Literal["all", "title"] = "all"
    distinct: bool = False
    filter: str = ""


def best(ranked: Callable[[int], tuple[Hit, ...]], count: int, *, distinct: bool) -> tuple[Hit, ...]:
    """The best `count` of the hits that `ranked` returns for a number of hits.

    distinct: paragraphs of the same text in any case count as one, which takes the place of the lowest of them
        among the best `BUFFER`, as in IRCoT's released code (`retriever_server/elasticsearch_retriever.py`).
    """
    if not distinct:
        return ranked(count)
    last = {hit.paragraph.text.strip().lower(): hit for hit in ranked(max(count, BUFFER_HITS))}
    return numbered(sorted(last.values(), key=lambda hit: hit.score, reverse=True)[:count])


# An existing index that others fill, as `search.toml` describes it.


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a document that hold the parts of its paragraph.

    title, text: full-text fields. id: a field of type keyword, or `_id`. whole_title: a keyword field of whole titles,
        without which titles can't be looked up. Dots lead into objects and to multi-fields.
    """

    title: str
    text: str
    id: str = "_id"
    whole_title: str | None = None


class ExistingIndex(Fields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An index, or an alias, that others fill and that is searched as a corpus."""

    index: str


class SearchServer(Struct, frozen=True, kw_only=True):
    """Connection to Elasticsearch or OpenSearch, and the indexes there.

    urls: one for each node, `https://user:password@host:9200`, with user and password where they are needed.
    cloud_id: an Elastic Cloud deployment, instead of URLs. sniff: whether the server is asked for further nodes.
    api_key: Elasticsearch's, encoded; None for none. ca: a file of trusted certificate authorities; None for the usual
        ones.
    prefix: prefix of the names of all indexes. index, corpora: see `SearchFile`.
    """

    urls: tuple[str, ...] = ()
    cloud_id: str | None = None
    sniff: bool = False
    api_key: str | None = None
    ca: Path | None = None
    prefix: str = "cotrail-"
    index: dict[str, Any] = {}
    corpora: dict[str, ExistingIndex] = {}

    def __post_init__(self) -> None:
        if bool(self.urls) == bool(self.cloud_id):
            raise InputError("either COTRAIL_SEARCH_URL or COTRAIL_SEARCH_CLOUD_ID names the server; unset one")
        if self.cloud_id and self.sniff:
            raise InputError("Elastic Cloud balances its nodes itself; unset COTRAIL_SEARCH_SNIFF")
        try:
            users = {(address.user, address.password) for address in map(check_node, self.urls) if address.user}
        except ValueError as error:
            raise InputError(f"COTRAIL_SEARCH_URL can't be used: {error}") from None
        if len(users) > 1:
            raise InputError("COTRAIL_SEARCH_URL has several users or passwords; all nodes take the same")

    def __repr__(self) -> str:
        """Leaves out users, passwords and keys."""
        nodes = [str(check_node(url)).rpartition("://")[2] for url in self.urls]
        return f"SearchServer({', '.join(nodes) or (self.cloud_id or '').partition(':')[0]})"

    @property
    def secrets(self) -> Secrets:
        """Strings that must not appear in any message."""
        return Secrets((self.api_key or "", *(each for url in self.urls for each in check_node(url).secrets)))


def check_node(url: str) -> Address:
    """The address of a node; raises ValueError, whose message quotes nothing of it."""
    address = read_address(url, ("http", "https"))
    if not address.host:
        raise ValueError("it names no host; it reads like https://user:password@host:9200")
    if address.user is not None and not address.password:
        raise ValueError("it has a user and no password; a key alone belongs into COTRAIL_SEARCH_API_KEY")
    if address.query:
        raise ValueError("it has parameters, which the address of a search server can't have")
    return address


class RetrievalServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that answers in Search-R1's form, and is searched as a corpus; see `retrieve_server`.

    revision: a free description of what is searched and how, since such a server doesn't say; runs pin it, or the URL
        where it is empty. key_variable: the environment variable of the key that it takes as a bearer token.
    timeout_seconds: how long it may be silent.
    """

    table: ClassVar[str] = "servers"
    provider: ClassVar[str] = "search-r1"

    url: str
    revision: str = ""
    key_variable: VariableName | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] = 60.0

    def __post_init__(self) -> None:
        _check_url(self.url, "a retrieval server", "http://host:8000/retrieve")

    @property
    def place(self) -> str:
        """Its URL."""
        return self.url


Provider = Literal["brave", "exa", "searxng", "serper", "tavily"]

PROVIDERS: Mapping[Provider, tuple[str, str]] = {
    "brave": ("https://api.search.brave.com/res/v1/web/search", "https://brave.com/search/api"),
    "exa": ("https://api.exa.ai/search", "https://exa.ai"),
    "searxng": ("", "those of the engines that it asks"),
    "serper": ("https://google.serper.dev/search", "https://serper.dev"),
    "tavily": ("https://api.tavily.com/search", "https://tavily.com"),
}
"""Where each is asked, unless everybody runs their own, and where its terms are found."""


class WebSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The live web as a corpus, searched by a provider; see `web_search`.

    url: instead of the provider's public address. key_variable: the environment variable of its key.
    store: what is kept of what is found, which the user has to say, as it is kept for ever.
    read: whether the pages that a search finds are read, so that a paragraph is the page's text and not a snippet.
    private_addresses: whether pages may be on private networks, or on this machine.
    timeout_seconds: how long the provider may be silent, and how long a page may take in all.
    page_bytes, page_characters: how large a page may be, and how much of its text is kept.
    """

    table: ClassVar[str] = "web"

    provider: Provider
    url: str = ""
    key_variable: VariableName | None = None
    store: Literal["text"] | None = None
    read: bool = False
    private_addresses: bool = False
    timeout_seconds: Annotated[float, Meta(gt=0)] = 30.0
    page_bytes: Annotated[int, Meta(ge=1, le=50_000_000)] = 5_000_000
    page_characters: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000

    def __post_init__(self) -> None:
        url, terms = PROVIDERS[self.provider]
        if self.store is None:
            raise ValueError(
                "it doesn't say what may be stored: cotrail keeps for ever what it finds; read the terms of "
                f'{self.provider} ({terms}), and write store = "text" if they allow that'
            )
        force_setattr(self, "url", self.url or url)
        _check_url(self.url, "a search provider", url or "http://host:8080/search")

    @property
    def place(self) -> str:
        return self.url


class McpSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search tool of an MCP server as a corpus; see `mcp_search`.

    url: of a server over streamable HTTP; command: the program, with its arguments, of one over standard input and
        output. tool: its name; query, count: what its arguments for the query and the number of hits are called, the
        latter empty where it takes none; arguments: its others.
    revision: a free description of what is searched; runs pin it, or url or command where it is empty.
    store: what is kept of what is found, which the user has to say, as it is kept for ever.
    key_variable: the environment variable of a bearer token. timeout_seconds: how long a search may take.
    """

    table: ClassVar[str] = "mcp"
    provider: ClassVar[str] = "mcp"

    url: str = ""
    command: tuple[str, ...] = ()
    tool: str = "search"
    query: str = "query"
    count: str = ""
    arguments: dict[str, Any] = {}
    revision: str = ""
    store: Literal["text"] | None = None
    key_variable: VariableName | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] = 60.0

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.command):
            raise ValueError("it needs either the url of a server or the command that starts one")
        if self.store is None:
            raise ValueError(
                "it doesn't say what may be stored: cotrail keeps for ever what it finds; read the server's terms, and "
                'write store = "text" if they allow that'
            )
        if self.url:
            _check_url(self.url, "an MCP server", "http://host:8000/mcp")

    @property
    def place(self) -> str:
        """Its URL, or its command."""
        return self.url or " ".join(self.command)


RemoteServer = RetrievalServer | WebSearch | McpSearch


def _check_url(url: str, of: str, example: str) -> None:
    """Raises ValueError, which quotes nothing of the URL, unless it is an address with a path and nothing more."""
    reads = f"it reads like {example}"
    try:
        address = read_address(url, ("http", "https"))
    except ValueError as error:
        raise ValueError(f"the url isn't that of {of}: {error}; {reads}") from None
    if address.user is not None or address.query:
        raise ValueError(f"the url holds more than an address; {reads}, and key_variable names a key's variable")
    if not address.host or not address.path.strip("/"):
        raise ValueError(f"the url lacks a host or a path; {reads}")


# The file `search.toml`: settings of new indexes on the search server, and corpora that others keep.

RESERVED_SETTINGS = ("analysis", "blocks", "refresh_interval", "similarity", "sort")
"""Settings of an index that decide results, or that building needs for itself."""


class SearchFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file.

    index: settings of the indexes that cotrail creates, by their dotted names without `index.`.
    corpora, servers, web, mcp: existing indexes, retrieval servers, providers and search tools by the names of their
        corpora.
    """

    index: dict[str, Any] = {}
    corpora: dict[str, ExistingIndex] = {}
    servers: dict[str, RetrievalServer] = {}
    web: dict[str, WebSearch] = {}
    mcp: dict[str, McpSearch] = {}

    @property
    def remote(self) -> dict[str, RemoteServer]:
        """All that are only searched, by name."""
        return {**self.servers, **self.web, **self.mcp}


def read_search_file(path: Path) -> SearchFile:
    """The file's content, empty for a missing file; raises InputError where it is malformed."""
    what = "the search settings"
    document = read_toml_or_empty(path, what)
    try:
        search_file = msgspec.convert(document, SearchFile)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{what} {path} are malformed: {refusal(error, SearchFile, document)}; correct them"
        ) from error
    # TOML reads dotted names as nested tables.
    settings = {name.removeprefix("index."): value for name, value in dotted(search_file.index)}
    for name in settings:
        if name.startswith(RESERVED_SETTINGS):
            raise InputError(f"{what} {path} can't set {name}: cotrail sets it itself; take it out")
    every = [*search_file.servers, *search_file.web, *search_file.mcp]
    for name in (*search_file.corpora, *every):
        checked_name(name)
    if both := [name for name in every if every.count(name) > 1]:
        raise InputError(f"{what} {path} have two corpora {min(both)!r}, in two tables; rename one")
    return replace(search_file, index=settings)
