"""Address, credentials and index settings of a search server."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common.addresses import Address, read_address
from cotrail.common.redaction import Secrets
from cotrail.engines.retrieval.existing_index import ExistingIndex
from cotrail.errors import InputError


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
