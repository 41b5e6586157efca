"""`kill -9` in the middle of a run that searches a corpus by words and by embeddings, and has the hits reranked.

One real stack with a real embedder; the model and the rater are scripted.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from cotrail.configuration.settings import Settings
from cotrail.core.search_ways import SearchWay
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.retrieval.engine import NO_MODELS
from cotrail.engines.retrieval.stores import FolderStore
from cotrail.errors import NotInstalledError
from tests.conftest import Eventually
from tests.faults.stacked import SAMPLE, Cotrail, is_as_undisturbed, kill_in_mid_run, open_questions, steps_of
from tests.homes import SCRIPTED, home_of
from tests.searching import search

MODEL = "all-minilm-l6-v2"
DEPTH = 12


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    pytest.importorskip("faiss", reason="faiss isn't installed")
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")
    try:
        EMBEDDERS.find(NO_MODELS, MODEL).identity()
    except NotInstalledError as error:
        pytest.skip(str(error))
    sample = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    titles = {p["id"]: p["title"] for p in map(json.loads, (SAMPLE / "corpus.jsonl").read_text().splitlines())}
    chains = {q["question"]: {"sentences": q["chain"], "answer": q["answers"][0]} for q in sample}
    gold = {titles[each]: 1.0 for question in sample for each in question["gold"]}
    rater = '[raters.scripted]\nengine = "scripted"\npath = "scores.json"\n'
    scores = {sentence: gold for question in sample for sentence in (question["question"], *question["chain"])}
    with home_of(
        {
            "script.json": {"name": "sample", "questions": chains},
            "scores.json": {"scores": scores},
            "models.toml": SCRIPTED + rater,
            "questions.jsonl": sample,
        }
    ) as made:
        yield made


@pytest.fixture(scope="module")
def submit(cotrail: Cotrail, home: Path) -> Callable[[], str]:
    cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "dense", "--dense", MODEL)

    def submit() -> str:
        options = f"--system ircot --dataset jsonl --corpus dense --questions {home}/questions.jsonl --retriever hybrid"
        reranked = f"--rerank scripted --rerank-depth {DEPTH} --demonstrations {SAMPLE}/demonstrations.txt --json"
        return str(json.loads(cotrail("submit", *options.split(), *reranked.split()).splitlines()[-1])["run"])

    return submit


@pytest.mark.slow(group=2)
@pytest.mark.timeout(900)
def test_it_ends_as_if_nothing_had_been_and_says_how_each_search_was_made(
    home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually, submit: Callable[[], str]
) -> None:
    undisturbed = submit()
    eventually(lambda: open_questions(engine, undisturbed) == 0, "the undisturbed run is finished", 300)
    steps = steps_of(engine, undisturbed)
    run = kill_in_mid_run(cotrail, engine, "retrieval", submit, len(steps))
    is_as_undisturbed(engine, run, steps)
    with engine.begin() as connection:
        pins = connection.execute(text("SELECT knowledge FROM runs WHERE id = :run"), {"run": run}).scalar_one()
    assert SearchWay(retriever="hybrid", reranked=DEPTH).pins.items() <= pins.items()
    assert pins["relevance_rater"].startswith("scripted@")
    check_searches(home, engine, run)
    check_commands(home, cotrail, run)


def check_searches(home: Path, engine: Engine, run: str) -> None:
    """Each search found what the corpus finds by hand, and has the places of each hit in both lists."""
    corpus = FolderStore(Settings(home=home).corpora_path).open("dense")
    with engine.begin() as connection:
        found: Any = connection.execute(
            text(
                "SELECT request, result, (SELECT array_agg(paragraph_id ORDER BY rank) FROM paragraph_sets "
                "WHERE step_id = steps.id) FROM steps WHERE run_id = :run AND kind = 'retrieve' ORDER BY id LIMIT 40"
            ),
            {"run": run},
        ).all()
    assert found
    for request, result, ids in found:
        assert (request["options"], request["count"]) == ({"retriever": "hybrid"}, DEPTH)
        hits = search(corpus, request["query"], DEPTH, retriever="hybrid")
        assert [hit.paragraph.id for hit in hits] == ids
        places = [[[each.list, each.rank, each.score] for each in hit.lists] for hit in hits]
        assert result["lists"] == places


def check_commands(home: Path, cotrail: Cotrail, run: str) -> None:
    """Without the corpus it verifies and replays; a fork of it searches in another way where that is asked for."""
    shown = cotrail("trace", run, "1")
    assert "(bm25 " in shown
    assert "rated" in shown or "rate" in shown
    exported = json.loads(cotrail("trace", run, "1", "--json"))
    retrieved = next(step for step in exported["steps"] if step["kind"] == "retrieve")
    assert {each["list"] for hit in retrieved["hits"] for each in hit["lists"]} == {"bm25", "dense"}
    forked = json.loads(cotrail("fork", run, "--set", "retriever=dense", "--json"))["run"]
    cotrail("watch", forked)
    assert "dense" in cotrail("show", forked)
    plain = json.loads(cotrail("fork", run, "--set", "rerank=none", "--json"))["run"]
    cotrail("watch", plain)
    assert not [step for step in json.loads(cotrail("trace", plain, "1", "--json"))["steps"] if step["kind"] == "rate"]
    cotrail("corpora", "remove", "dense", "--yes")
    for each in (run, forked, plain):
        cotrail("replay", each)
        cotrail("audit", "verify", each)
