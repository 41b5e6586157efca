"""The search servers that tests run on.

- The one that TEST_SEARCH_URL names, if it is set.
- Otherwise Elasticsearch and OpenSearch, each started and ended by the tests, if there is Java and the folder
  `../shared/search-servers` beside the repository, or one that TEST_SEARCH_SERVERS names.
- Otherwise osmem, which speaks OpenSearch's protocol and ranks differently from Lucene.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from osmem_server import OsmemServer  # type: ignore[import-untyped]

from benchmarks.search_servers import Running, available, running

NAMED = os.environ.get("TEST_SEARCH_URL")
OSMEM = "osmem"


def tested() -> tuple[str, ...]:
    """The servers' names."""
    return ("TEST_SEARCH_URL",) if NAMED else available() or (OSMEM,)


@contextmanager
def opened(name: str) -> Iterator[Running]:
    """Runs one of them for as long as it is needed."""
    if NAMED:
        yield Running(name, NAMED)
    elif name == OSMEM:
        with OsmemServer.start(japanese=False) as server:
            yield Running(name, server.url, server.process.pid)
        server.process.stdout.close()
    else:
        with running(name) as server:
            yield server
