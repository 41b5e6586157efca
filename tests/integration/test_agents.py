"""Agents with a real model, from their submission to the prompts that are rebuilt of the record."""

import json
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from pydantic import SecretStr
from sqlalchemy import Engine, select

from cotrail.configuration.settings import Settings
from cotrail.core.actions.registry import KINDS
from cotrail.core.ports.language_model import Profile
from cotrail.core.prompts import assistant
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import InputError
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import questions, steps
from cotrail.services.runs import submission
from cotrail.services.runs.requests import make_request
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent, working_here
from tests.unit.test_agents_as_systems import BRENN, HISTORY, QUESTION, TAGS, VELL, self_ask, tag_agent

pytestmark = pytest.mark.usefixtures("verified")

EXAMPLE = """\
Question: Who was president when the Eiffel Tower was built?
Are follow up questions needed here: Yes.
Follow up: When was the Eiffel Tower built?
Intermediate answer: It was built in 1889.
Follow up: Who was president of France in 1889?
Intermediate answer: Sadi Carnot was.
So the final answer is: Sadi Carnot

"""
OPENING = """\
I search. <search> Who lives in Brenn? </search>

<information>Doc 1(Title: Brenn) Lio lives there.
</information>

I search. <search> Who is Lio? </search>

<information>Doc 1(Title: Lio) Lio is a baker.
</information>

I search. <search>"""
"""The beginning of a message; even the smallest model goes on with a query."""


class NoSettings(Struct, frozen=True):
    """Agents without settings."""


def ask_itself(question: Question, _: Any, __: NoSettings) -> System:
    return self_ask(question, EXAMPLE)


def write_tags(question: Question, _: Any, __: NoSettings) -> System:
    return tag_agent(question, TAGS["search-r1"], (assistant(OPENING),))


SELF_ASK = SystemSpec(
    name="self-ask",
    version=1,
    title="Self-Ask",
    settings=NoSettings,
    open=ask_itself,
    needs=lambda _: Needs(corpus=True),
)
TAG_AGENT = SystemSpec(
    name="tag-agent",
    version=1,
    title="Tags",
    settings=NoSettings,
    open=write_tags,
    needs=lambda _: Needs(corpus=True, capabilities=frozenset({"turns", "continue"})),
)
find = partial(find_spec, (SELF_ASK, TAG_AGENT))


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a corpus of two pages, to submit runs of the agents from."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    for module in ("configuring", "submission"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find)
    server = '[models.server]\nengine = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\ncontext = 2048\n'
    (tmp_path / "models.toml").write_text(server)
    corpus = [{"id": each.id, "title": each.title, "text": each.text} for each in (BRENN, HISTORY, VELL)]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in corpus))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION.text, "answers": ["x"]}))
    assert cotrail("index", tmp_path / "corpus.jsonl", "--name", "towns").exit_code == 0
    return tmp_path


@pytest.fixture
def here(
    home: Path, database: str, servers: Settings, sent: list[Dispatch], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    """A worker that knows the agents."""
    pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")
    own = {"home": home, "database_url": SecretStr(database), "broker_url": SecretStr(servers.broker)}
    with working_here(servers.model_copy(update=own), sent, monkeypatch, find) as made:
        yield made


def request(home: Path, **fields: Any) -> Any:
    usual = {"dataset": "jsonl", "questions": str(home / "questions.jsonl"), "corpus": "towns", "seed": 1}
    return make_request(usual | fields)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
@pytest.mark.parametrize("spec", [SELF_ASK, TAG_AGENT], ids=lambda spec: spec.name)
def test_an_agent_searches_with_a_real_model_and_its_prompts_are_rebuilt(
    spec: SystemSpec,
    profile: Profile,
    home: Path,
    here: Runtime,
    engine: Engine,
    sent: list[Dispatch],
    query: Query,
    eventually: Eventually,
    cotrail: Cotrail,
) -> None:
    def run() -> str:
        prepared = submission.prepare(request(home, system=spec.name, model="smollm2-135m", profile=profile))
        submitted = submission.submit(engine, prepared)
        for kind in KINDS:
            sent.extend(unsent(engine, kind))

        def ended() -> bool:
            while sent:
                perform(sent.pop(0), carry_out)
            return query(select(questions.c.status).where(questions.c.run_id == submitted)) == [{"status": "finished"}]

        eventually(ended, "the question is answered")
        return submitted

    def written(run: str) -> list[Any]:
        result = steps.c.result
        asked = select(steps.c.kind, steps.c.fingerprint, result["text"], result["prompt_digest"].label("prompt"))
        return query(asked.where(steps.c.run_id == run).order_by(steps.c.sequence))

    one = run()
    assert [row["kind"] for row in written(one)][:3] == ["reason", "retrieve", "reason"]
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, one, find)] == [""]
    for number, row in enumerate(written(one)):
        if row["kind"] == "reason":
            rebuilt = cotrail("audit", "prompt", one, "q", number).stdout_bytes
            assert sha256(rebuilt).hexdigest() == row["prompt"]
    # The profile `fast` promises no text twice.
    if profile == "deterministic":
        assert written(run()) == written(one)


def test_a_model_that_cannot_go_on_in_a_turn_is_refused_as_the_run_is_submitted(home: Path, engine: Engine) -> None:
    with pytest.raises(InputError, match="the model server "):
        submission.prepare(request(home, system="tag-agent", model="server"))
