"""The same questions give the same chains whatever a model's server speaks, and wherever its thoughts are.

Each system runs once with a scripted model, and then with a server that writes the same texts in a dialect of today's
providers, behind thoughts. No thought is in a sentence, a query, a later prompt or an answer.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from msgspec import Struct
from pydantic import SecretStr
from sqlalchemy import Engine, select

from cotrail.configuration.settings import Settings
from cotrail.core.actions.registry import KINDS
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import questions, steps
from cotrail.services.runs import submission
from cotrail.services.runs.requests import make_request
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import SAMPLE
from tests.integration.conftest import Cotrail, Query
from tests.integration.provider_answers import DIALECTS as PROVIDERS
from tests.integration.served import Reply, Served, answer, streamed
from tests.integration.stepping import unsent, working_here

pytestmark = pytest.mark.usefixtures("verified")

ASKED = 2
"""The number of questions."""

THOUGHT = "Hmm, zyx. The answer is: Zyxland. So the answer is: Zyxland.\n\n[Query 1]: Who is Zyx?"
"""A thought that would be a sentence, a query and an answer to whoever took it for text."""

MARK = "zyx"
"""A word that is in no text but thoughts."""


class Dialect(Struct, frozen=True):
    """How a server talks: the fields of the model's table, and what it answers to a thought and a text."""

    table: dict[str, Any]
    reply: Callable[[str, str], Reply]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def pieces(text: str, size: int = 7) -> list[str]:
    return [text[place : place + size] for place in range(0, len(text), size)]


def chat(*said: dict[str, Any], finish: str = "stop", **usage: Any) -> Reply:
    counts = {"prompt_tokens": 9, "completion_tokens": 20, **usage}
    return streamed([*said, delta(finish), {"choices": [], "usage": counts}, "[DONE]"])


def in_field(name: str, thought: str, text: str) -> Reply:
    return chat(*(delta(**{name: each}) for each in pieces(thought)), *(delta(content=each) for each in pieces(text)))


def in_text(opening: str, closing: str, thought: str, text: str) -> Reply:
    return chat(*(delta(content=each) for each in pieces(f"{opening}{thought}{closing}{text}")))


def in_details(thought: str, text: str) -> Reply:
    details = [[{"type": "reasoning.text", "index": 0, "text": each}] for each in pieces(thought)]
    return chat(*(delta(reasoning_details=each) for each in details), *(delta(content=each) for each in pieces(text)))


def in_chunks(thought: str, text: str) -> Reply:
    parts = [[{"type": "thinking", "thinking": [{"type": "text", "text": each}]}] for each in pieces(thought)]
    return chat(*(delta(content=each) for each in parts), *(delta(content=each) for each in pieces(text)))


def hidden(_: str, text: str) -> Reply:
    return chat(*(delta(content=each) for each in pieces(text)), completion_tokens_details={"reasoning_tokens": 12})


def off(_: str, text: str) -> Reply:
    return chat(*(delta(content=each) for each in pieces(text)))


def whole(thought: str, text: str) -> Reply:
    message = {"role": "assistant", "content": text, "reasoning_content": thought}
    return answer(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}})


def completion(thought: str, text: str) -> Reply:
    said = pieces(f"<think>{thought}</think>{text}")
    events = [{"choices": [{"text": each, "finish_reason": None}]} for each in said]
    return streamed([*events, {"choices": [{"text": "", "finish_reason": "stop"}]}, "[DONE]"])


def of_provider(name: str, thought: str, text: str) -> Reply:
    return streamed(PROVIDERS[name].streamed(thought=thought, text=text))


FIELD = {"api": "chat", "thinks": "field"}
CHAT = {"api": "chat", "thinks": "tags"}
DIALECTS = {
    "off": Dialect({"api": "chat"}, off),
    "hidden": Dialect({"api": "chat", "thinks": "hidden"}, hidden),
    "o-series": Dialect(
        {
            "api": "chat",
            "thinks": "hidden",
            "limit_field": "max_completion_tokens",
            "omits": ["temperature", "top_p", "seed", "stop", "logprobs"],
        },
        hidden,
    ),
    "vllm, ollama": Dialect(FIELD, partial(in_field, "reasoning")),
    "deepseek, sglang, llama.cpp": Dialect(FIELD, partial(in_field, "reasoning_content")),
    "openrouter": Dialect(FIELD, in_details),
    "mistral": Dialect(FIELD, in_chunks),
    "no stream": Dialect(FIELD | {"omits": ["stream"]}, whole),
    "tags": Dialect(CHAT, partial(in_text, "<think>", "</think>\n\n")),
    "empty tags": Dialect(CHAT, lambda _, text: in_text("<think>\n\n", "</think>\n\n", "", text)),
    "inside": Dialect({"api": "chat", "thinks": "inside"}, partial(in_text, "", "</think>")),
    "kimi": Dialect(CHAT, partial(in_text, "◁think▷", "◁/think▷")),
    "gpt-oss": Dialect(
        CHAT, partial(in_text, "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")
    ),
    "completions": Dialect({"api": "completions", "thinks": "tags"}, completion),
    **{name: Dialect({"api": name, "thinks": "field"}, partial(of_provider, name)) for name in PROVIDERS},
}

SYSTEMS: dict[str, dict[str, Any]] = {
    "ircot": {"system": "ircot", "demonstrations": str(SAMPLE / "demonstrations.txt")},
    "rethinking": {
        "system": "rethinking",
        "embedder": "scripted",
        "entailer": "scripted",
        "chains": 3,
        "task": "temporal",
        "variant": "selection",
        "settings": {"knowledge": ["corpus"], "reading": {"reader": "none"}},
        "demonstrations": str(SAMPLE / "demonstrations.txt"),
    },
    "searchain": {"system": "searchain", "prompt": "prompt.txt", "settings": {"confidence": "document"}},
}


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the bundled sample, its scripted engines, and a model behind a server."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    for name, content in scripts().items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "models.toml").write_text(MODELS)
    (tmp_path / "prompt.txt").write_text("Plan queries for this question: {question}")
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(each) for each in sample()[:ASKED]))
    assert cotrail("index", SAMPLE / "corpus.jsonl", "--name", "sample").exit_code == 0
    return tmp_path


@pytest.fixture
def run(
    home: Path,
    database: str,
    servers: Settings,
    engine: Engine,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., str]]:
    """Carries a run out, a step at a time; returns its id."""
    own = {"home": home, "database_url": SecretStr(database), "broker_url": SecretStr(servers.broker)}
    with working_here(servers.model_copy(update=own), sent, monkeypatch) as made:
        yield partial(_run, home, made, engine, sent, query, eventually)


def _run(
    home: Path,
    _: Runtime,
    engine: Engine,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    system: str,
    model: str,
) -> str:
    usual = {"dataset": "jsonl", "questions": str(home / "questions.jsonl"), "corpus": "sample", "seed": 1}
    settings = {name: str(home / value) if name == "prompt" else value for name, value in SYSTEMS[system].items()}
    run = submission.submit(engine, submission.prepare(make_request(usual | settings | {"model": model})))
    for kind in KINDS:
        sent += unsent(engine, kind)

    def ended() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return {"status": "open"} not in query(select(questions.c.status).where(questions.c.run_id == run))

    eventually(ended, "the questions have ended")
    with engine.connect() as connection:
        assert {each.divergence for each in replay_run(connection, run, find_system)} == {""}
    return run


def chain(query: Query, run: str) -> list[Any]:
    """All that a run asked, searched for and wrote, in the order of its steps; and its answers."""
    result = steps.c.result
    columns = (steps.c.kind, result["text"], result["prompt_digest"], result["digest"], steps.c.state)
    asked = select(questions.c.key, steps.c.sequence, *columns).join(questions, questions.c.id == steps.c.question_id)
    rows = query(asked.where(steps.c.run_id == run).order_by(questions.c.key, steps.c.sequence))
    told = (questions.c.key, questions.c.status, questions.c.answer, questions.c.sentences, questions.c.collected)
    return [*rows, *query(select(*told).where(questions.c.run_id == run).order_by(questions.c.key))]


def written(query: Query, run: str) -> list[str]:
    """What the model wrote, in the order in which it was asked."""
    raw = steps.c.result["raw"].astext.label("raw")
    texts = select(raw).where(steps.c.run_id == run, steps.c.kind.in_(["reason", "read"]))
    return [row["raw"] for row in query(texts.order_by(steps.c.finished_at, steps.c.id))]


@pytest.mark.parametrize(
    "system", [pytest.param(name, marks=[pytest.mark.slow(group=7)] * (name == "rethinking")) for name in SYSTEMS]
)
def test_a_system_finds_the_same_chains_in_every_dialect(
    system: str, home: Path, run: Callable[..., str], served: Served, query: Query, cotrail: Cotrail
) -> None:
    scripted = run(system, "scripted")
    expected, texts = chain(query, scripted), written(query, scripted)
    assert {row["status"] for row in expected if "status" in row} == {"finished"}
    tables: dict[str, Any] = {}
    # Completions know no turns, which Search-in-the-Chain has.
    spoken = {name: each for name, each in DIALECTS.items() if system != "searchain" or name != "completions"}
    for name, dialect in spoken.items():
        url = served.url.replace("/v1", PROVIDERS[name].version) if name in PROVIDERS else served.url
        common = {"engine": "openai", "url": url, "model": "m", "context": 100_000, "thought_tokens": 2000}
        tables[name.replace(", ", "-").replace(" ", "-")] = common | dialect.table
    (home / "models.toml").write_text(f"{MODELS}\n{tomli_w.dumps({'models': tables})}")
    for (name, dialect), model in zip(spoken.items(), tables, strict=True):
        served.asked.clear()
        served.replies = [dialect.reply(THOUGHT, text) for text in texts]
        found = run(system, model)
        assert chain(query, found) == expected, name
        assert MARK not in json.dumps([asked.body for asked in served.generations]).lower(), name
        thoughts = query(select(steps.c.result["thoughts"].astext.label("it")).where(steps.c.run_id == found))
        kept = {row["it"] for row in thoughts} - {None}
        assert kept == (set() if name in ("off", "hidden", "o-series", "empty tags") else {THOUGHT.strip()}), name
        shown = cotrail("trace", found, sample()[0]["id"])
        assert shown.exit_code == 0
        assert ("--thoughts" in shown.output) == bool(kept)
        assert "Zyxland." in cotrail("trace", found, sample()[0]["id"], "--thoughts").output or not kept


@pytest.mark.parametrize(
    ("table", "reply", "said"),
    [
        (FIELD, chat(delta(reasoning="Hm."), finish="length"), "thought_tokens"),
        (CHAT, chat(delta(content="<think>Hm, and"), finish="length"), "thought_tokens"),
        (FIELD, chat(delta(refusal="I can't help.")), "refused to answer"),
    ],
    ids=["thinks without end", "closes no tag", "refuses"],
)
def test_whoever_gives_no_answer_fails_with_what_it_wrote(
    table: dict[str, Any],
    reply: Reply,
    said: str,
    home: Path,
    run: Callable[..., str],
    served: Served,
    query: Query,
    cotrail: Cotrail,
) -> None:
    common = {"engine": "openai", "url": served.url, "model": "m", "context": 100_000, "thought_tokens": 9}
    (home / "models.toml").write_text(f"{MODELS}\n{tomli_w.dumps({'models': {'m': common | table}})}")
    served.replies = [reply]
    found = run("ircot", "m")
    assert {row["status"] for row in query(select(questions.c.status).where(questions.c.run_id == found))} == {"failed"}
    shown = cotrail("trace", found, sample()[0]["id"], "--thoughts")
    assert "UnansweredError" in shown.output
    assert said in " ".join(shown.output.split())
    assert "Hm" in shown.output or "I can't help." in shown.output
    told = json.loads(cotrail("trace", found, sample()[0]["id"], "--json").output)
    failed = next(step for step in told["steps"] if step.get("failure"))
    assert failed["failure"]["written"]["generated_tokens"] == 20
    assert cotrail("report", found, "--html", home / "report.html").exit_code == 0
    assert ("thought" in (home / "report.html").read_text()) or "refused" in said
