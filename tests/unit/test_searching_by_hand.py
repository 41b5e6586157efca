"""`cotrail search`: a corpus is searched by hand."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import CotrailError

GIVEN = [
    Paragraph(id="i", title="Ink", text="Ink stains paper."),
    Paragraph(id="p", title="Pen", text="A pen writes."),
    Paragraph(id="s", title="", text="Salt is in the sea."),
]


def search(*words: str) -> str:
    done = CliRunner().invoke(app, ["search", *words])
    if isinstance(done.exception, CotrailError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def corpora(home: Path) -> FolderStore:
    store = FolderStore(home / "corpora")
    store.build("ink", GIVEN)
    return store


def test_what_is_found_is_shown_with_the_words_that_match(corpora: FolderStore) -> None:
    header, first, *others = search("ink", "Which inks stain?").splitlines()
    assert header.split() == ["score", "id", "paragraph", "words", "of", "the", "query"]
    assert first.split()[0] == "1"
    assert "Ink: Ink stains paper." in first
    assert first.endswith("Ink, stains")
    assert others == []
    assert "Nothing in ink is found" in search("ink", "zebra")


def test_programs_get_json(corpora: FolderStore) -> None:
    found = json.loads(search("ink", "pen", "--json"))
    assert [(each["rank"], each["id"]) for each in found["paragraphs"]] == [(1, "p")]
    assert json.loads(search("ink", "pen", "--json", "--explain")) == {"found": found, "lists": {}}


def test_what_cannot_be_searched_is_refused(corpora: FolderStore) -> None:
    with pytest.raises(CotrailError, match="there is no corpus 'nope'"):
        search("nope", "ink")
    with pytest.raises(CotrailError, match="the corpus's retriever has no option 'retriever'"):
        search("ink", "ink", "--retriever", "dense")


def test_a_hybrid_corpus_shows_both_lists(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="faiss isn't installed")
    from cotrail.engines.retrieval import embeddings
    from tests.integration.test_dense import Embedder

    monkeypatch.setattr(embeddings, "EMBEDDERS", Embedder())
    settings = {"model": "made-up", "retriever": "hybrid"}
    FolderStore(home / "corpora").build("both", GIVEN, new=NewIndex(engine="dense", settings=settings))
    header, *rows = search("both", "ink", "--explain").splitlines()
    assert header.split()[:5] == ["score", "by", "bm25", "by", "dense"]
    assert len(rows) == len(GIVEN)
    [ink] = [row for row in rows if "Ink: " in row]
    assert " 1 (" in ink
    assert sum(" - " in row for row in rows) == 2  # which have no word of the query
    lists = json.loads(search("both", "ink", "--explain", "--json"))["lists"]
    assert [len(lists[way]["paragraphs"]) for way in ("bm25", "dense")] == [1, 3]
