"""The address of a search server, the credentials for it, and the indexes in it."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common.addresses import Address, read_address
from cotrail.common.redaction import Secrets
from cotrail.engines.retrieval.existing_index import ExistingIndex
from cotrail.errors import InputError


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
