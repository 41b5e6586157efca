"""The viewer behind a proxy that shows it below a path: all that pages lead to is below it, whatever the proxy does."""

import re
from collections import deque
from html import unescape

import httpx2
import pytest
from sqlalchemy import Engine

from cotrail.configuration.settings import settings
from tests.integration.served_here import serving

PREFIX = "/below/cotrail"
ADDRESSES = re.compile(r'(?:href|src|action|data-load|data-events)="([^"]*)"')
MOST_PAGES = 60


@pytest.mark.parametrize("sent", ["", PREFIX], ids=["the proxy takes the prefix away", "the proxy leaves the prefix"])
def test_whatever_pages_lead_to_is_below_the_prefix(store: Engine, monkeypatch: pytest.MonkeyPatch, sent: str) -> None:
    url = store.url.set(drivername="postgresql").render_as_string(hide_password=False)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", url)
    monkeypatch.setenv("COTRAIL_API_PREFIX", PREFIX)
    settings.cache_clear()
    seen, waiting = {f"{PREFIX}/"}, deque([f"{PREFIX}/"])
    with serving() as address, httpx2.Client(headers={"Accept": "text/html"}, timeout=60) as client:
        while waiting and len(seen) < MOST_PAGES:
            page = waiting.popleft()
            answer = client.get(f"{address}{sent}{page.removeprefix(PREFIX)}")
            assert answer.status_code == 200, page
            for found in map(unescape, ADDRESSES.findall(answer.text)):
                if not found or found.startswith(("#", "http", "data:")):
                    continue
                assert found.startswith(f"{PREFIX}/"), f"{found} on {page}"
                path = found.partition("#")[0].partition("?")[0]
                if "/v1/" not in path and "/auth/" not in path and path not in seen:
                    seen.add(path)
                    waiting.append(path)
    assert any(f"{PREFIX}/runs/" in each for each in seen)


@pytest.mark.parametrize("prefix", ["cotrail", "/cotrail/", "//elsewhere", "/a b", "/a?b"])
def test_what_is_no_path_is_refused(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cotrail.errors import InputError

    monkeypatch.setenv("COTRAIL_API_PREFIX", prefix)
    settings.cache_clear()
    with pytest.raises(InputError, match="COTRAIL_API_PREFIX"):
        settings()
