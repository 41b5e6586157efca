"""`search.toml` is read whole or refused with its reason."""

from pathlib import Path
from typing import Any

import pytest

from cotrail.configuration.settings import Settings
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.elasticsearch.retriever import paragraph
from cotrail.engines.retrieval.search_server import ExistingIndex, Fields, RetrievalServer, SearchFile, read_search_file
from cotrail.errors import InputError, StepError
from tests.cases import each_case


def written(folder: Path, content: str) -> Path:
    path = folder / "search.toml"
    path.write_text(content)
    return path


def test_the_file_says_how_indexes_are_made_and_which_others_are_corpora(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(
        tmp_path,
        """
        [index]
        number_of_shards = 3
        index.number_of_replicas = 1
        routing.allocation.require.zone = "a"

        [corpora.news]
        index = "news-2024"
        title = "headline"
        text = "content.body"
        whole_title = "headline.raw"

        [servers.wiki]
        url = "http://host:8000/retrieve"
        revision = "wiki-18"
        """,
    )
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_SEARCH_URL", "http://host:9200")
    server = Settings().search_server
    assert server is not None
    assert Settings().remote_corpora == {"wiki": RetrievalServer(url="http://host:8000/retrieve", revision="wiki-18")}
    assert server.index == {"number_of_shards": 3, "number_of_replicas": 1, "routing.allocation.require.zone": "a"}
    assert server.corpora == {
        "news": ExistingIndex(
            index="news-2024", title="headline", text="content.body", id="_id", whole_title="headline.raw"
        )
    }


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    assert read_search_file(tmp_path / "search.toml") == SearchFile()


@each_case(
    ("content", "said"),
    [
        ("[index]\nsimilarity.default.k1 = 2", r"can't set similarity\.default\.k1"),
        ("[index]\nindex.refresh_interval = '1s'", "can't set refresh_interval"),
        ("[corpora.news]\nindex = 'news'\ntitle = 'a'", "`text`"),
        ("[corpora.news]\nindex = 'news'\ntitle = 'a'\ntext = 'b'\nboost = 2", "boost"),
        ("[corpora.'a b']\nindex = 'news'\ntitle = 'a'\ntext = 'b'", "can't be named"),
        ("[servers.wiki]", "`url`"),
        ("[servers.wiki]\nurl = 'http://host:8000'", "lacks a host or a path"),
        ("[servers.wiki]\nurl = 'ftp://host/retrieve'", "begin with http"),
        ("[servers.wiki]\nurl = 'http://host/retrieve'\ntimeout_seconds = 0", "above 0"),
        ("[servers.'a b']\nurl = 'http://host/retrieve'", "can't be named"),
        ("[web.wide]", "`provider`"),
        ("[web.wide]\nprovider = 'bing'", "brave"),
        ("[web.wide]\nprovider = 'exa'", r"doesn't say what may be stored.*terms of exa \(https://exa\.ai\).*store = "),
        ("[web.wide]\nprovider = 'exa'\nstore = 'digest'", r"store` can't be 'digest'; there are: text"),
        ("[web.wide]\nprovider = 'searxng'\nstore = 'text'", "reads like http://host:8080/search"),
        ("[web.wide]\nprovider = 'exa'\nstore = 'text'\nurl = 'http://host'", "lacks a host or a path"),
        ("[web.wide]\nprovider = 'exa'\nstore = 'text'\npage_bytes = 0", "page_bytes"),
        ("[web.'a b']\nprovider = 'exa'\nstore = 'text'", "can't be named"),
        (
            "[web.wiki]\nprovider = 'exa'\nstore = 'text'\n[servers.wiki]\nurl = 'http://host/retrieve'",
            "two corpora 'wiki', in two tables",
        ),
        ("[indexes]", "indexes"),
        ("[index", "isn't TOML"),
    ],
)
def test_what_can_not_be_used_is_refused_with_its_name(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_search_file(written(tmp_path, content))


@each_case(
    "line",
    [
        "url = 'http://ada:hunter2@host/retrieve'",
        "url = 'http://host/retrieve?token=hunter2'",
        "url = 'http://ada:hunter2@host:x/retrieve'",
        "url = 'http://host/retrieve'\nkey_variable = 'hunter2'",
    ],
)
def test_a_secret_in_the_table_of_a_server_is_refused_and_not_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError) as error:
        read_search_file(written(tmp_path, f"[servers.wiki]\n{line}"))
    assert "hunter2" not in str(error.value)


NESTED = Fields(title="headline.raw", text="content.body", id="number")


@each_case(
    "source",
    [
        {"headline": "A", "content": {"body": "b c"}, "number": 7},
        {"headline": ["A"], "content.body": ["b", "c"], "number": "7"},
        {"headline.raw": "A", "content": {"body": "b c"}, "number": 7},
    ],
)
def test_a_paragraph_is_read_however_its_document_is_written(source: dict[str, Any]) -> None:
    assert paragraph("x", source, NESTED) == Paragraph(id="7", title="A", text="b c")


def test_a_document_may_lack_a_title_and_a_text_but_no_id() -> None:
    assert paragraph("x", {"number": 7}, NESTED) == Paragraph(id="7", title="", text="")
    assert paragraph("x", {}, Fields(title="t", text="b")).id == "x"
    with pytest.raises(StepError, match="'x' has no number"):
        paragraph("x", {"headline": "A"}, NESTED)
