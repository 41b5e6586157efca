"""Where corpora are kept by their names: in a folder, or in a search server that every host reaches."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from cotrail.common.redaction import Secrets
from cotrail.common.server_addresses import Address, read_address
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.retrieval.manifest import IndexManifest, corpora, corpus_directory
from cotrail.engines.retrieval.search_file import ExistingIndex
from cotrail.errors import InputError, NotInstalledError

Progress = Callable[[int], None]
"""Is told the number of paragraphs so far."""


class CorpusStore(Protocol):
    """Keeps corpora by name. UnavailableError where it doesn't answer, InputError for names that no corpus can have."""

    def build(self, name: str, paragraphs: Iterable[Paragraph], progress: Progress | None = None) -> IndexManifest:
        """Indexes the paragraphs, whose ids are distinct, as the corpus of that name.

        A corpus of that name is searched as before until the new one is whole; an error or an interruption leaves
        nothing behind.
        """

    def open(self, name: str) -> Corpus:
        """The corpus of that name; UnknownNameError lists those there are."""

    def manifests(self) -> dict[str, IndexManifest]:
        """The corpora by name, sorted."""


class SearchServer(Struct, frozen=True, kw_only=True):
    """How Elasticsearch or OpenSearch is reached, and what is where in it.

    urls: one a node, `https://user:password@host:9200`, user and password where they are wanted.
    cloud_id: an Elastic Cloud deployment, in the place of URLs. sniff: whether the server is asked for further nodes.
    api_key: Elasticsearch's, encoded; None without. ca: a file of the authorities to trust; None for the usual ones.
    prefix: what the names of all indexes begin with. index, corpora: see `SearchFile`.
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
        """Without users, passwords and keys."""
        nodes = [str(check_node(url)).rpartition("://")[2] for url in self.urls]
        return f"SearchServer({', '.join(nodes) or (self.cloud_id or '').partition(':')[0]})"

    @property
    def secrets(self) -> Secrets:
        """What must be shown nowhere."""
        return Secrets((self.api_key or "", *(each for url in self.urls for each in check_node(url).secrets)))


def check_node(url: str) -> Address:
    """The address of a search server's node; ValueError says what is wrong with it, and quotes nothing."""
    address = read_address(url, ("http", "https"))
    if not address.host:
        raise ValueError("it names no host; it reads like https://user:password@host:9200")
    if address.user is not None and not address.password:
        raise ValueError("it has a user and no password; a key alone belongs into COTRAIL_SEARCH_API_KEY")
    if address.query:
        raise ValueError("it has parameters, which a search server's address has not")
    return address


class FolderStore:
    """Corpora as tantivy indexes, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, name: str, paragraphs: Iterable[Paragraph], progress: Progress | None = None) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name; CorpusError where the folder can't be written."""
        from cotrail.engines.retrieval.tantivy import build_index

        return build_index(paragraphs, corpus_directory(self._folder, name), progress)

    def open(self, name: str) -> Corpus:
        """The corpus of that name; UnknownNameError lists those there are."""
        from cotrail.engines.retrieval.tantivy import open_corpus

        return open_corpus(self._folder, name)

    def manifests(self) -> dict[str, IndexManifest]:
        """The corpora by name, sorted."""
        return dict(corpora(self._folder))


def corpus_store(folder: Path, server: SearchServer | None) -> CorpusStore:
    """The server's corpora where there is a server, otherwise the folder's."""
    if server is None:
        return FolderStore(folder)
    try:
        from cotrail.engines.retrieval.elasticsearch import ElasticsearchStore
    except ModuleNotFoundError as error:
        raise NotInstalledError(
            f"COTRAIL_SEARCH_URL needs {error.name}; install it with `pip install 'cotrail[elasticsearch]'`"
        ) from error
    return ElasticsearchStore(server)
