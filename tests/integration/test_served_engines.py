"""Runs whose embedder and rater are behind servers: from their submission to their answers, outages included."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine, func, select, update

pytest.importorskip("httpx2", reason="httpx2 isn't installed")

from cotrail.configuration.settings import Settings
from cotrail.core.actions.registry import KINDS
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, runs, steps
from cotrail.services.runs import submission
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import find_system
from cotrail.tasks.engines import PREFIX
from cotrail.tasks.micro_batching import MicroBatcher
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.faults.stacked import SAMPLE
from tests.integration.conftest import Cotrail, Query
from tests.integration.served import KEY, Reply, Served, answer, computed, held
from tests.integration.stepping import unsent
from tests.integration.test_searchain import BRENN, FIRST, QUESTION, RIVER, SEA, VELL
from tests.integration.text_servers import openai_embeddings, reranked, score_of, similarity_of

pytestmark = pytest.mark.usefixtures("verified")

BORN = "Is Brenn on the Vell?"
CHAINS = [f"{BRENN} So the answer is yes.", "Brenn lies by the sea. So the answer is no."]
MANY = "Is Brenn far from the sea?"
FACTS = [f"Brenn lies {number} miles from the sea." for number in ("two", "nine", "forty", "ninety")]
AGAIN = "Into which sea does the Vell flow ?"
LAST = f"[Query 1]: {AGAIN}\n[Answer 1]: The Amber Sea.\n[Final Content]: So the answer is Amber Sea [1]."
SCRIPTS: dict[str, Any] = {
    "planner": {
        "name": "planner",
        "questions": {
            QUESTION: {"answer": "", "messages": [FIRST, LAST]},
            RIVER: {"answer": "the Vell"},
            SEA: {"answer": "the Amber Sea"},
            BORN: {"answer": "yes", "samples": CHAINS},
            MANY: {"answer": "yes", "samples": [f"{fact} So the answer is yes." for fact in FACTS]},
        },
    },
    "judge": {"judgements": {}, "default": {"entailment": 0.6, "contradiction": 0.1}},
}


@pytest.fixture
def home(cotrail: Cotrail, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a scripted model, an embedder and a rater behind a server, and a corpus of two towns."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("A_KEY", KEY)
    server = f'engine = "server"\nurl = "{served.url}"\nkey_variable = "A_KEY"\naccount = "{tmp_path.name}"\n'
    (tmp_path / "models.toml").write_text(
        '[models.planner]\nengine = "scripted"\npath = "planner.json"\n'
        '[entailers.judge]\nengine = "scripted"\npath = "judge.json"\n'
        f'[embedders.letters]\n{server}model = "letters"\n[raters.words]\n{server}model = "words"\n'
    )
    for name, script in SCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(script))
    corpus = [{"id": "1", "title": "Brenn", "text": BRENN}, {"id": "2", "title": "Vell", "text": VELL}]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in corpus))
    (tmp_path / "prompt.txt").write_text("Plan queries for this question: {question}")
    assert cotrail("index", tmp_path / "corpus.jsonl", "--name", "towns").exit_code == 0
    return tmp_path


@pytest.fixture
def begin(home: Path, here: Runtime, engine: Engine, sent: list[Dispatch]) -> Callable[..., str]:
    """Submits a run of one question; returns its id."""

    def begin(question: str, **changes: Any) -> str:
        asked = {"id": "q", "question": question, "answers": ["yes"]}
        (home / "questions.jsonl").write_text(json.dumps(asked))
        usual = {"dataset": "jsonl", "questions": str(home / "questions.jsonl"), "corpus": "towns", "model": "planner"}
        run = submission.submit(engine, submission.prepare(make_request(usual | changes)))
        for kind in KINDS:
            sent.extend(unsent(engine, kind))
        return run

    return begin


@pytest.fixture
def work(sent: list[Dispatch], eventually: Eventually) -> Callable[[Callable[[], bool]], None]:
    """Carries out what is sent until something has happened."""

    def work(happened: Callable[[], bool]) -> None:
        def done() -> bool:
            while sent:
                perform(sent.pop(0), carry_out)
            return happened()

        eventually(done, "what the steps lead to is recorded")

    return work


@pytest.fixture
def answered(work: Callable[..., None], query: Query) -> Callable[[str], str]:
    """Carries a run out to its end; returns its answer."""

    def answered(run: str) -> str:
        asked = select(questions.c.status, questions.c.answer).where(questions.c.run_id == run)
        work(lambda: query(asked)[0]["status"] == "finished")
        return str(query(asked)[0]["answer"])

    return answered


def searchain(home: Path) -> dict[str, Any]:
    return {
        "system": "searchain",
        "prompt": str(home / "prompt.txt"),
        "duplicate_rater": "words",
        "settings": {"duplicates": "rater", "least_rating": 0.9, "confidence": "document"},
    }


RETHINKING = {
    "system": "rethinking",
    "embedder": "letters",
    "entailer": "judge",
    "chains": 2,
    "settings": {"knowledge": ["corpus"]},
    "demonstrations": str(SAMPLE / "yes_no_demonstrations.txt"),
}


def results(query: Query, run: str, kind: str) -> list[Any]:
    """The results of a run's steps of a kind."""
    asked = select(steps.c.request, steps.c.result).where(steps.c.run_id == run, steps.c.kind == kind)
    return query(asked.order_by(steps.c.sequence))


def test_search_in_the_chain_finds_duplicates_by_a_rater_behind_a_server(
    home: Path, served: Served, begin: Callable[..., str], answered: Callable[[str], str], engine: Engine, query: Query
) -> None:
    served.replies = [computed(reranked)]
    run = begin(QUESTION, **searchain(home))
    assert answered(run) == "So the answer is Amber Sea."
    [rated] = results(query, run, "rate")
    assert rated["result"]["scores"] == [round(score_of(AGAIN, each), 6) for each in (RIVER, SEA)]
    assert [(each.path, each.body["query"], each.body["documents"]) for each in served.asked] == [
        ("/v1/rerank", AGAIN, [RIVER, SEA])
    ]
    # A duplicate isn't searched for.
    assert len(results(query, run, "retrieve")) == 2
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_system)] == [""]
    assert query(select(runs.c.profile).where(runs.c.id == run)) == [{"profile": "fast"}]


def test_rethinking_weighs_its_chains_by_an_embedder_behind_a_server(
    served: Served, begin: Callable[..., str], answered: Callable[[str], str], engine: Engine, query: Query
) -> None:
    served.replies = [computed(openai_embeddings)]
    run = begin(BORN, **RETHINKING)
    assert answered(run) == "yes"
    compared = results(query, run, "embed")
    facts = [each["request"]["sentences"] for each in compared]
    assert facts == [[BRENN], ["Brenn lies by the sea."]]
    statements = [f"Brenn\n{BRENN}", f"Vell\n{VELL}"]
    for (fact,), each in zip(facts, compared, strict=True):
        expected = [similarity_of(fact, statement) for statement in statements]
        assert sorted(each["result"]["similarities"][0]) == pytest.approx(sorted(expected), abs=2e-6)
    texts = [text for each in served.asked for text in each.body["input"]]
    assert sorted(texts) == sorted([BRENN, "Brenn lies by the sea.", *statements])
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_system)] == [""]


@pytest.fixture
def at_once(
    here: Runtime, served: Served, sent: list[Dispatch], begin: Callable[..., str], eventually: Eventually
) -> Callable[..., None]:
    """Compares four facts in as many threads; the others come while the first waits for the server."""

    def carry_out_others() -> bool:
        for message in [each for each in sent if each.kind != "embed"]:
            sent.remove(message)
            perform(message, carry_out)
        return len(sent) == len(FACTS)

    def waiting() -> int:
        batchers = [each for each in here.engines._evidence.values() if isinstance(each, MicroBatcher)]
        return sum(each._waiting.qsize() for each in batchers)

    def at_once(reply: Reply) -> None:
        go = threading.Event()
        served.replies = [held(go, computed(openai_embeddings)), reply]
        begin(MANY, **RETHINKING | {"chains": 4})
        eventually(carry_out_others, "all comparisons are sent")
        with ThreadPoolExecutor(len(FACTS)) as pool:
            performed = [pool.submit(perform, sent.pop(0), carry_out)]
            eventually(lambda: len(served.asked) == 1, "the first is under way")
            performed += [pool.submit(perform, sent.pop(0), carry_out) for _ in FACTS[1:]]
            eventually(lambda: waiting() == len(FACTS) - 1, "the others wait")
            go.set()
            assert all(each.result(60) for each in performed)

    return at_once


def test_what_the_threads_of_a_worker_ask_for_together_is_one_request(
    at_once: Callable[..., None], served: Served, work: Callable[..., None], query: Query
) -> None:
    at_once(computed(openai_embeddings))
    first, second = (each.body["input"] for each in served.asked)
    assert len(first) == len(second) == 3
    assert sorted([*first, *second]) == sorted([*FACTS, f"Brenn\n{BRENN}", f"Vell\n{VELL}"])
    work(lambda: query(select(questions.c.status)) == [{"status": "finished"}])


def test_an_outage_is_met_once_for_all_that_ask_together(
    at_once: Callable[..., None], served: Served, query: Query, eventually: Eventually
) -> None:
    at_once(answer(503, {"error": "gone"}))
    assert len(served.asked) == 2
    ended = select(attempts.c.outcome).join(steps).where(steps.c.kind == "embed")
    eventually(
        lambda: sorted(each["outcome"] or "" for each in query(ended)) == ["finished", *["unavailable"] * 3],
        "all are recorded",
    )


def test_an_account_that_is_refused_costs_no_attempt_and_the_run_goes_on_later(
    home: Path,
    served: Served,
    servers: Settings,
    begin: Callable[..., str],
    answered: Callable[[str], str],
    work: Callable[..., None],
    sent: list[Dispatch],
    engine: Engine,
    query: Query,
) -> None:
    served.replies = [answer(429, {"error": {"message": "slow"}}, {"Retry-After": "900"}), computed(openai_embeddings)]
    run = begin(BORN, **RETHINKING)
    ended = select(attempts.c.outcome).join(steps).where(steps.c.kind == "embed")
    work(lambda: query(ended) == [{"outcome": "unavailable"}] * 2)
    # The second one knew from the first that the account has to wait.
    assert len(served.asked) == 1
    with Redis.from_url(servers.broker.replace("redis+socket://", "unix://")) as redis:
        assert redis.delete(f"{PREFIX}{home.name}/letters") == 1
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.state == "ready").values(not_before=func.now()))
    sent += unsent(engine, "embed")
    assert answered(run) == "yes"
    assert sorted(each["outcome"] for each in query(ended)) == ["finished"] * 2 + ["unavailable"] * 2


def test_a_server_that_another_model_came_to_blocks_its_question(
    served: Served, begin: Callable[..., str], work: Callable[..., None], query: Query
) -> None:
    served.replies = [
        computed(openai_embeddings),
        computed(lambda body: {"data": [{"index": n, "embedding": [1]} for n, _ in enumerate(body["input"])]}),
    ]
    begin(BORN, **RETHINKING)
    work(lambda: query(select(questions.c.status)) == [{"status": "blocked"}])
    [row] = query(select(questions.c.reason))
    assert "answers 1 numbers a text, and answered 32 before" in str(row["reason"])
