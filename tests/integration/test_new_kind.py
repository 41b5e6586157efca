"""A kind of action, its results and a system that the code doesn't know: each is a file's worth, and nothing else."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.audit.provenance import provenance
from cotrail.configuration.deadlines import check_deadlines, deadline_of
from cotrail.configuration.settings import Settings
from cotrail.core.actions.kind import ActionKind, Engines
from cotrail.core.actions.registry import KINDS
from cotrail.core.binding import Binding
from cotrail.core.edits import read_point
from cotrail.core.questions import Question
from cotrail.core.results import Json, Result
from cotrail.core.system import Action, Answer, System, Together
from cotrail.errors import UnavailableError
from cotrail.models.commands.submission import submit
from cotrail.models.queries.progress import read_outages
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.traces import find_question, read_question
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from cotrail.tasks.routing import send
from cotrail.tasks.runtime import Runtime
from cotrail.tasks.step import carry_out, perform
from cotrail.workers.app import options
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import unsent, working_here

pytestmark = pytest.mark.usefixtures("registered", "verified")

# The kind: what its file and its line in the registry would hold.


class Count(Action, frozen=True, kw_only=True):
    """Count the words of a text."""

    text: str


class Counted(Result, frozen=True, kw_only=True):
    """A number of words, and their length on average."""

    words: int
    length: float


def _carry_out(action: Count, _: Engines) -> Counted:
    words = action.text.split()
    return Counted(words=len(words), length=sum(map(len, words)) / len(words))


def _decides(action: Count, _: Binding) -> Json:
    return {"text": action.text}


COUNT = ActionKind(name="count", action=Count, result=Counted, role="retrieval", carry_out=_carry_out, decides=_decides)


def _unreadable(*_: object) -> Count:
    raise ValueError("a form of a later version")


# The system: what its file would hold.


class Tally(Struct, frozen=True):
    """What the answer says beside its text."""

    counts: tuple[int, ...]


class CountingSettings(Struct, frozen=True):
    """How often the words are counted."""

    times: int = 2


def counting(question: Question, _: Any, settings: CountingSettings) -> System:
    counted = yield Together(tuple(Count(text=f"{question.text} {n}") for n in range(settings.times)))
    assert isinstance(counted, tuple)
    counts = tuple(each.words for each in counted if isinstance(each, Counted))
    last = yield Count(text="that is all")
    assert isinstance(last, Counted)
    return Answer(text=str(sum(counts) + last.words), details=Tally(counts=counts))


SPEC = SystemSpec(
    name="counting",
    version=1,
    title="Counting",
    settings=CountingSettings,
    open=counting,
    needs=lambda _: Needs(),
    details=Tally,
)
find_counting = partial(find_spec, (SPEC,))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, COUNT.name, COUNT)


@pytest.fixture
def here(
    registered: None, database: str, servers: Settings, sent: list[Dispatch], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    """A worker that knows the system."""
    own = {"database_url": SecretStr(database)}
    with working_here(servers.model_copy(update=own), sent, monkeypatch, find_counting) as made:
        yield made


FINISHED = select(steps.c.id).where(steps.c.state == "finished")


def begin(engine: Engine) -> None:
    named = {"system": SPEC.name, "system_version": SPEC.version, "settings": {"times": 2}, "shots": {}}
    submit(engine, replace(submission(), **named), [Question(id="q", text="how many words")], find_counting)


@pytest.fixture
def answered(
    registered: None, engine: Engine, here: Runtime, sent: list[Dispatch], query: Query, eventually: Eventually
) -> None:
    """The question, all of whose steps the worker has carried out."""
    begin(engine)
    for message in unsent(engine, "count"):
        perform(message, carry_out)
    eventually(lambda: sent, "what follows is sent")
    perform(sent[0], carry_out)
    eventually(lambda: len(query(FINISHED)) == 3, "the last step is recorded")


@pytest.mark.usefixtures("answered")
def test_its_steps_are_claimed_carried_out_and_committed(query: Query) -> None:
    columns = (questions.c.status, questions.c.answer, questions.c.weighing)
    assert query(select(*columns)) == [{"status": "finished", "answer": "11", "weighing": {"counts": [4, 4]}}]
    assert query(select(steps.c.kind, steps.c.request, steps.c.result).where(steps.c.sequence == 2)) == [
        {"kind": "count", "request": {"text": "that is all"}, "result": {"words": 3, "length": 3.0}}
    ]


@pytest.mark.usefixtures("answered")
def test_its_record_replays_and_is_traced_and_told_in_prov(engine: Engine, cotrail: Cotrail) -> None:
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, "costless", find_counting)] == [""]
        traced = read_question(connection, "costless", "q")
        document = provenance(read_trail(connection, "costless", [find_question(connection, "costless", "q")]))
    assert traced.details == {"counts": [4, 4]}
    last = traced.steps[-1]
    assert (last.action, last.result) == (Count(text="that is all"), Counted(words=3, length=3.0))
    assert len(document["activity"]) == 3
    shown = json.loads(cotrail("trace", "costless", "q", "--json").output)
    assert shown["steps"][-1]["result"] == {"words": 3, "length": 3.0}
    told = cotrail("trace", "costless", "q").output
    assert '{"words":3,"length":3.0}' in told
    assert '{"counts":[4,4]}' in told
    assert shown["details"] == {"counts": [4, 4]}


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("unread", [{}, {COUNT.name: replace(COUNT, read_back=_unreadable)}], ids=["kind", "form"])
def test_where_its_steps_cannot_be_read_they_are_traced_as_they_are_recorded(
    unread: dict[str, Any], cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = json.loads(cotrail("trace", "costless", "q", "--json").output)
    with monkeypatch.context() as patch:
        patch.delitem(KINDS, COUNT.name)
        for name, kind in unread.items():
            patch.setitem(KINDS, name, kind)
        shown = json.loads(cotrail("trace", "costless", "q", "--json").output)
        told = cotrail("trace", "costless", "q").output
    assert shown == known
    assert '{"text":"that is all"}' in told
    assert '{"words":3,"length":3.0}' in told


@pytest.mark.usefixtures("answered")
def test_code_that_asks_for_something_else_departs_from_the_record(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(COUNT, decides=lambda action, _: {"text": action.text.upper()})
    with monkeypatch.context() as patch, engine.connect() as connection:
        patch.setitem(KINDS, COUNT.name, changed)
        [replayed] = replay_run(connection, "costless", find_counting)
    assert "the same kind with another input" in replayed.divergence


def test_an_outage_of_its_engine_is_told_by_its_name(
    engine: Engine, here: Runtime, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Counted:
        raise UnavailableError("it can't count now")

    begin(engine)
    monkeypatch.setitem(KINDS, COUNT.name, replace(COUNT, carry_out=away))
    for message in unsent(engine, "count"):
        perform(message, carry_out)
    assert query(select(attempts.c.outcome)) == [{"outcome": "unavailable"}]
    with engine.connect() as connection:
        [outage] = read_outages(connection, "costless")
    assert outage.what == "the engine of count steps"


def test_its_workers_deadlines_and_fork_points_are_known(servers: Settings) -> None:
    worker = options("retrieval")
    assert worker[worker.index("-Q") + 1] == "retrieve,lookup,open,count"
    given = Settings(deadlines={"count": 5})
    check_deadlines(given)
    assert deadline_of("count", given) == 5
    assert deadline_of("count", servers) == COUNT.deadline
    assert read_point("count") == "count"


def test_a_process_that_does_not_know_it_leaves_its_steps_to_one_that_does(
    engine: Engine, here: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> Counted:
        raise UnavailableError("it can't count now")

    begin(engine)
    messages = unsent(engine, "count")
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, COUNT.name, replace(COUNT, carry_out=away))
        perform(messages[0], carry_out)
    with monkeypatch.context() as patch, engine.connect() as connection:
        patch.delitem(KINDS, COUNT.name)
        assert send(messages) == 0
        [outage] = read_outages(connection, "costless")
    assert "knows no count steps and doesn't send them; restart it" in caplog.text
    assert outage.what == "the engine of count steps"
