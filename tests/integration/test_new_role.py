"""Roles, a kind of engine and a kind of action that the code doesn't know, and the system that asks them.

What `made_up` has is what a file and a line in each registry would hold.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.audit.provenance import provenance
from cotrail.core.actions.generate import Judge, Reason
from cotrail.core.actions.kind import ActionKind, Engines
from cotrail.core.actions.registry import KINDS
from cotrail.core.binding import Binding
from cotrail.core.ports.encoders import ROLES
from cotrail.core.ports.role import JUDGE, BatchedRole, EngineRole
from cotrail.core.prompts import Asked, Prompt, Text, system, user
from cotrail.core.questions import Question
from cotrail.core.results import Generated, Json, Result
from cotrail.core.system import Action, Answer, System, expect
from cotrail.engines.engine_catalogue import EngineCatalogue, ScriptTable
from cotrail.engines.engine_kinds import CATALOGUES
from cotrail.engines.script_files import ScriptedEngine
from cotrail.errors import InputError
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import find_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import attempts, questions, runs, steps
from cotrail.services.results.reports.reported_runs import configuration
from cotrail.services.runs import forking, submission
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.requests import make_request
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent

pytestmark = pytest.mark.usefixtures("made_up", "verified")

# The role, its port and its kind of engine.


class Translation(Protocol):
    """A text that is to be translated."""

    @property
    def text(self) -> str:
        """The text."""


class Translated(Result, frozen=True, kw_only=True):
    """A text in another language."""

    text: str


class Translator(Protocol):
    """Translates texts."""

    def translate(self, asked: Sequence[Translation]) -> list[Translated]:
        """The translations, in the order of the texts."""


TRANSLATOR: BatchedRole[Translator, Translation, Translated] = BatchedRole(
    name="translator",
    kind="translator",
    work="translates questions",
    carry_out=lambda translator, asked: translator.translate(asked),
)


class TranslationScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Translations by their texts."""

    translations: dict[str, str] = {}


class ScriptedTranslator(ScriptedEngine[TranslationScript]):
    """Translates by a script."""

    form = TranslationScript

    def translate(self, asked: Sequence[Translation]) -> list[Translated]:
        return [Translated(text=self._script.translations[each.text]) for each in asked]


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted translator."""

    scripted = ScriptedTranslator


TRANSLATORS: EngineCatalogue[Translator] = EngineCatalogue(kind=TRANSLATOR.kind, tables=Scripted)

# The kind of action.


class Translate(Action, frozen=True, kw_only=True):
    """Translate a text."""

    text: str


def _carry_out(action: Translate, engines: Engines) -> Translated:
    return engines.ask(TRANSLATOR, action)


def _decides(action: Translate, binding: Binding) -> Json:
    return {"text": action.text, "translator": binding.engine(TRANSLATOR.name)}


TRANSLATE = ActionKind(
    name="translate",
    action=Translate,
    result=Translated,
    role="evidence",
    carry_out=_carry_out,
    decides=_decides,
    pinned=TRANSLATOR.name,
)

# The system, and the further language models that it asks.

SUMMARIZER = EngineRole(
    name="summarizer",
    kind="model",
    work="sums up what was written",
    has_default=True,
    capabilities=frozenset({"turns"}),
)


class JudgedSettings(Struct, frozen=True):
    """Whether the answer is judged."""

    judged: bool = True


def judged_translation(question: Question, _: Any, settings: JudgedSettings) -> System:
    """Translates the question, writes about it, sums that up, and judges the sum."""
    text = expect((yield Translate(text=question.text)), Translated).text
    about = Prompt(turns=(user(Asked(text)),))
    written = expect((yield Reason(prompt=about, max_tokens=40, until="stop")), Generated).text
    shorter = Prompt(turns=(system("Be brief."), user(Asked(text), Text(f" {written}"))))
    summary = expect((yield Reason(prompt=shorter, max_tokens=40, until="stop", model=SUMMARIZER.name)), Generated).text
    if not settings.judged:
        return Answer(text=summary)
    asked = Prompt(turns=(user(Asked(text)),))
    judging = Judge(prompt=asked, max_tokens=4, choices=("yes", "no"), model=JUDGE.name)
    verdict = expect((yield judging), Generated).text
    return Answer(text=f"{summary} ({verdict})")


def run_needs(settings: JudgedSettings) -> Needs:
    judges = (JUDGE,) if settings.judged else ()
    return Needs(engines=(TRANSLATOR, SUMMARIZER, *judges), capabilities=frozenset({"turns"}))


SPEC = SystemSpec(
    name="judged-translation", version=1, title="-", settings=JudgedSettings, open=judged_translation, needs=run_needs
)
find = partial(find_spec, (SPEC,))

QUESTION, TRANSLATION = "Wo endet die Vell?", "Where does the Vell end?"
MODELS = "".join(
    f'[{table}.{name}]\nengine = "scripted"\npath = "{name}.json"\n\n'
    for table, name in [
        ("models", "writer"),
        ("models", "brief"),
        ("models", "strict"),
        ("models", "mild"),
        ("translators", "german"),
    ]
)


def says(name: str, *messages: str) -> dict[str, Any]:
    return {"name": name, "questions": {TRANSLATION: {"answer": messages[0], "messages": messages}}}


SCRIPTS: dict[str, Any] = {
    "writer": says("writer", "It ends, after many bends, in the Amber Sea.", "Still in the Amber Sea."),
    "brief": says("brief", "Amber Sea"),
    "strict": says("strict", "no"),
    "mild": says("mild", "yes"),
    "german": {"translations": {QUESTION: TRANSLATION}},
}
NAMED = {"translator": "german", "summarizer": "brief", "judge": "strict"}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROLES, TRANSLATOR.name, TRANSLATOR)
    monkeypatch.setitem(CATALOGUES, TRANSLATORS.kind, TRANSLATORS)
    monkeypatch.setitem(KINDS, TRANSLATE.name, TRANSLATE)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with scripted engines and a question."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    for module in ("configuring", "submission", "forking"):
        monkeypatch.setattr(f"cotrail.services.runs.{module}.find_system", find)
    (tmp_path / "models.toml").write_text(MODELS)
    for name, script in SCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(script))
    (tmp_path / "questions.jsonl").write_text(json.dumps({"id": "q", "question": QUESTION, "answers": ["Amber Sea"]}))
    return tmp_path


def begin(engine: Engine, home: Path, **changes: Any) -> str:
    usual = {"system": SPEC.name, "dataset": "jsonl", "questions": str(home / "questions.jsonl"), "model": "writer"}
    asked = make_request(usual | {"engines": NAMED} | changes)
    return submission.submit(engine, submission.prepare(asked))


def work(engine: Engine, sent: list[Dispatch], query: Query, eventually: Eventually, run: str) -> dict[str, Any]:
    """Carries out what a worker is sent, until the run's question has ended; returns how."""
    for kind in KINDS:
        sent += unsent(engine, kind)
    status = select(questions.c.status, questions.c.answer).where(questions.c.run_id == run)

    def ended() -> bool:
        while sent:
            perform(sent.pop(0), carry_out)
        return bool(query(status)[0]["status"] != "open")

    eventually(ended, "the question has ended")
    return query(status)[0]


@pytest.fixture
def done(engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually) -> str:
    """A run that is finished."""
    run = begin(engine, home)
    assert work(engine, sent, query, eventually, run) == {"status": "finished", "answer": "Amber Sea (no)"}
    return run


def test_the_engines_of_all_roles_are_asked_and_pinned(done: str, engine: Engine, query: Query) -> None:
    [row] = query(select(runs.c.knowledge, runs.c.served).where(runs.c.id == done))
    assert {role: pin.split("@")[0] for role, pin in row["knowledge"].items()} == NAMED
    assert row["served"]
    requests = query(select(steps.c.kind, steps.c.request).where(steps.c.run_id == done).order_by(steps.c.sequence))
    assert [(each["kind"], each["request"].get("model")) for each in requests] == [
        ("translate", None),
        ("reason", None),
        ("reason", "summarizer"),
        ("judge", "judge"),
    ]
    with engine.connect() as connection:
        shown = dict(configuration(read_run(connection, done)))
    assert shown["translator"].startswith("german@")
    assert shown["judge"].startswith("strict@")


def test_the_record_replays_and_is_told_in_prov(done: str, engine: Engine) -> None:
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, done, find)] == [""]
        document = provenance(read_trail(connection, done, [find_question(connection, done, "q")]))
        record = read_run(connection, done)
    labels = {name: each.get("prov:label") for name, each in document["agent"].items()}
    pinned = {f"cotrail:agent/{role}": pin for role, pin in (record.knowledge | {"model": record.model}).items()}
    assert labels.items() >= pinned.items()


def test_a_fork_with_another_judge_takes_over_all_but_the_verdict(
    done: str, engine: Engine, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    forked = forking.fork(engine, ForkRequest(run=done, changes={"engines.judge": "mild"}))
    assert forked.adopted == 3
    assert work(engine, sent, query, eventually, forked.run)["answer"] == "Amber Sea (yes)"


def test_a_role_that_is_no_longer_needed_is_not_pinned(done: str, engine: Engine, query: Query) -> None:
    forked = forking.fork(engine, ForkRequest(run=done, changes={"judged": False}))
    [row] = query(select(runs.c.knowledge).where(runs.c.id == forked.run))
    assert row["knowledge"].keys() == {"translator", "summarizer"}


def test_a_language_model_that_has_a_default_is_the_run_s_own(
    engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    run = begin(engine, home, engines={"translator": "german", "judge": "strict"})
    assert work(engine, sent, query, eventually, run)["status"] == "finished"
    [row] = query(select(runs.c.model, runs.c.knowledge).where(runs.c.id == run))
    assert row["knowledge"]["summarizer"] == row["model"]


def test_another_language_model_than_the_pinned_one_blocks_the_step(
    engine: Engine, home: Path, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    run = begin(engine, home)
    (home / "strict.json").write_text(json.dumps(says("strict", "perhaps")))
    assert work(engine, sent, query, eventually, run)["status"] == "blocked"
    [row] = query(select(attempts.c.error).where(attempts.c.outcome == "blocked"))
    assert "submitted with the model strict@" in row["error"]["message"]


def test_a_language_model_that_computes_takes_the_run_from_the_queues_of_served_ones(
    engine: Engine, home: Path, query: Query
) -> None:
    pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")
    run = begin(engine, home, engines=NAMED | {"judge": "smollm2-135m"})
    assert query(select(runs.c.served).where(runs.c.id == run)) == [{"served": False}]


@pytest.mark.parametrize(
    ("engines", "said"),
    [
        (NAMED | {"juror": "strict"}, "judged-translation needs no juror: name none"),
        ({"translator": "german"}, r"grades answers: name its `judge`, .* `\[models.NAME\]`"),
        ({"judge": "strict"}, r"translates questions: name its `translator`, .* `\[translators.NAME\]`"),
        (NAMED | {"translator": "strict"}, "there is no translator 'strict'; there are: german"),
        (NAMED | {"judge": "german"}, "there is no model 'german'"),
        (NAMED | {"summarizer": "plain"}, "the model plain .* no turns"),
    ],
)
def test_what_does_not_fit_is_refused_at_submission(
    engines: dict[str, str], said: str, engine: Engine, home: Path
) -> None:
    with (home / "models.toml").open("a") as file:
        file.write('[models.plain]\nengine = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\ncontext = 512\n')
    with pytest.raises(InputError, match=said):
        begin(engine, home, engines=engines)


def test_options_and_run_files_name_them(home: Path, cotrail: Cotrail, query: Query) -> None:
    given = {"system": SPEC.name, "dataset": "jsonl", "questions": "questions.jsonl", "model": "writer"}
    lines = [f'{key} = "{value}"\n' for key, value in given.items()]
    engines = 'translator = "german"\n[engines]\njudge = "strict"\nsummarizer = "brief"\n'
    (home / "run.toml").write_text("".join(lines) + engines)
    submitted = cotrail("submit", home / "run.toml", "--engine", "judge=mild")
    assert submitted.exit_code == 0, submitted.output
    [row] = query(select(runs.c.knowledge))
    assert {role: pin.split("@")[0] for role, pin in row["knowledge"].items()} == NAMED | {"judge": "mild"}
    forked = cotrail("fork", "latest", "--engine", "judge=strict")
    assert forked.exit_code == 0, forked.output
    assert "german" in cotrail("models").output
    refused = cotrail("submit", home / "run.toml", "--engine", "judge")
    assert "write ROLE=NAME" in str(refused.exception)
