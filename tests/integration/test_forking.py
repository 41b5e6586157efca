"""`cotrail fork` on a real store: what is taken over, what is computed, and that the record is whole."""

import json
import platform
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.audit.records import head_of
from cotrail.audit.verification import verify
from cotrail.cli.commands.fork import parse_changes
from cotrail.configuration.settings import settings
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import KINDS
from cotrail.core.demonstrations import AnswerForm
from cotrail.core.edits import Point
from cotrail.core.results import Embedded, Entailed, Failure
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands.control import cancel
from cotrail.models.commands.forking import Forked, fork
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.retrying import retry
from cotrail.models.commands.submission import Submission, submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.runs import read_run
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.models.records.runs import BUDGETS
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.seals import step_digest
from cotrail.models.schema.tables import attempts, paragraph_sets, questions, runs, sentences, steps
from cotrail.services.runs.forking import resolve_changes
from cotrail.services.runs.repeating import begin_repeating
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, ask, begin, completed, executed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

ORIGIN, FORK = "costless", "fork"
RECORDED_KINDS = ["retrieve", "reason", "retrieve", "reason", "retrieve", "reason", "read"]


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


@pytest.fixture
def origin(engine: Engine, ledger: Ledger) -> Engine:
    """The store with a run of two questions, all finished."""
    run_to_end(ledger, begin(engine, 2))
    return engine


def forked(name: str = FORK, of: str = ORIGIN, **changes: Any) -> Submission:
    """The origin again, but for these settings."""
    usual = submission()
    return replace(
        usual,
        id=name,
        origin=of,
        settings=msgspec.json.decode(msgspec.json.encode(usual.settings | changes)),
        binding=replace(usual.binding, temperature=0.0),  # as the store has it
    )


def reading(reader: str) -> dict[str, Any]:
    return {"reading": submission().settings["reading"] | {"reader": reader}}


def retrieving(count: int) -> dict[str, Any]:
    return {"retrieval": submission().settings["retrieval"] | {"retrieval_count": count}}


def carry_out(engine: Engine, ledger: Ledger) -> int:
    """What workers do with what is open; returns how many steps they computed."""
    kinds = ("retrieve", "reason", "read")
    return run_to_end(ledger, [message for kind in kinds for message in unsent(engine, kind)])


def kinds_of(query: Query, run: str) -> list[tuple[str, bool]]:
    """The steps of a run's first question, and whether each was taken over."""
    first = select(questions.c.id).where(questions.c.run_id == run, questions.c.position == 0).scalar_subquery()
    rows = query(
        select(steps.c.kind, steps.c.adopted_from).where(steps.c.question_id == first).order_by(steps.c.sequence)
    )
    return [(row["kind"], row["adopted_from"] is not None) for row in rows]


def is_whole(query: Query, run: str) -> None:
    """Its questions are finished, and its digests cover what stands there, one on the other."""
    assert {row["status"] for row in query(select(questions.c.status).where(questions.c.run_id == run))} == {"finished"}
    assert query(select(steps.c.id).where(steps.c.run_id == run, steps.c.digest != step_digest({}))) == []
    joined = select(questions.c.opened, steps.c.question_id, steps.c.sequence, steps.c.previous, steps.c.digest)
    of_run = joined.where(steps.c.run_id == run, steps.c.question_id == questions.c.id)
    rows = query(of_run.order_by(steps.c.question_id, steps.c.sequence))
    for _, of_question in groupby(rows, key=lambda row: row["question_id"]):
        digests: list[str] = []
        for previous, batch in groupby(of_question, key=lambda row: (row["opened"], row["previous"])):
            assert head_of(previous[0], digests) == previous[1]
            digests += [row["digest"] for row in batch]


def agrees(engine: Engine, run: str) -> bool:
    """Whether the code still does what the run's record says, and the record is as it was written."""
    with engine.connect() as connection:
        diverged = [each for each in replay_run(connection, run, find_system) if each.divergence]
        return (diverged, verify(read_trail(connection, run)).findings) == ([], ())


def contents(query: Query, run: str, table: Any) -> list[dict[str, Any]]:
    """What belongs to a run's steps, without the ids that are its own."""
    own = [column for column in table.c if column.name not in ("step_id", "question_id")]
    rows = select(questions.c.key, steps.c.sequence, *own).where(
        steps.c.id == table.c.step_id, steps.c.question_id == questions.c.id, steps.c.run_id == run
    )
    return query(rows.order_by(questions.c.key, steps.c.sequence, *own))


def test_without_a_point_all_is_taken_over_that_the_settings_leave_as_it_is(
    origin: Engine, ledger: Ledger, query: Query
) -> None:
    assert fork(origin, forked(**reading("cot")), None, find_system) == Forked(
        questions=2, adopted=2 * (STEPS - 1), whole=0
    )
    assert carry_out(origin, ledger) == 2
    assert kinds_of(query, FORK) == [(kind, kind != "read") for kind in RECORDED_KINDS]
    is_whole(query, FORK)
    assert agrees(origin, FORK)
    assert query(select(runs.c.origin, runs.c.forked_at).where(runs.c.id == FORK)) == [
        {"origin": ORIGIN, "forked_at": None}
    ]


def test_what_is_taken_over_is_a_record_of_its_own_and_names_what_it_was_copied_from(
    origin: Engine, query: Query
) -> None:
    fork(origin, forked(), None, find_system)
    names = ("sequence", "kind", "fingerprint", "request", "result", "state", "prompt_tokens", "milliseconds")

    def recorded(run: str) -> list[dict[str, Any]]:
        columns = [steps.c[name] for name in names]
        return query(select(*columns).where(steps.c.run_id == run).order_by(steps.c.question_id, steps.c.sequence))

    assert recorded(FORK) == recorded(ORIGIN)
    computed = select(steps.c.id).where(steps.c.run_id == ORIGIN).order_by(steps.c.id)
    copied = select(steps.c.adopted_from).where(steps.c.run_id == FORK).order_by(steps.c.adopted_from)
    assert [row["adopted_from"] for row in query(copied)] == [row["id"] for row in query(computed)]
    for table in (sentences, paragraph_sets):
        assert contents(query, FORK, table) == contents(query, ORIGIN, table) != []
    executed = select(attempts, steps.c.started_at.label("began"), steps.c.finished_at, steps.c.state).where(
        steps.c.id == attempts.c.step_id, steps.c.run_id == FORK
    )
    rows = query(executed)
    assert len(rows) == 2 * STEPS
    assert all(
        (row["epoch"], row["worker"], row["outcome"], row["started_at"], row["ended_at"])
        == (1, "fork", row["state"], row["began"], row["finished_at"])
        for row in rows
    )


def test_questions_whose_whole_record_is_taken_over_are_finished_at_once(origin: Engine, query: Query) -> None:
    assert fork(origin, forked(), None, find_system).adopted == 2 * STEPS
    is_whole(query, FORK)
    answers = select(questions.c.key, questions.c.answer, questions.c.sentences, questions.c.collected)
    assert query(answers.where(questions.c.run_id == FORK)) == query(answers.where(questions.c.run_id == ORIGIN))


@pytest.mark.parametrize(("at", "adopted"), [(3, 3), (-2, 5), ("read", 6), (0, 0)])
def test_steps_before_a_point_are_taken_over_as_given(
    at: Point, adopted: int, origin: Engine, ledger: Ledger, query: Query
) -> None:
    assert fork(origin, forked(**retrieving(2)), at, find_system).adopted == 2 * adopted
    assert carry_out(origin, ledger) == 2 * (STEPS - adopted)
    assert kinds_of(query, FORK) == [(kind, n < adopted) for n, kind in enumerate(RECORDED_KINDS)]
    is_whole(query, FORK)
    assert agrees(origin, FORK)
    found = select(paragraph_sets.c.step_id, steps.c.sequence).where(
        steps.c.id == paragraph_sets.c.step_id, steps.c.run_id == FORK
    )
    hits = [row["sequence"] for row in query(found)]
    assert {n: hits.count(n) for n in (0, 2, 4)} == {n: 2 * (4 if n < adopted else 2) for n in (0, 2, 4)}


def test_another_model_computes_all_but_the_first_search(origin: Engine, ledger: Ledger, query: Query) -> None:
    other = forked()
    assert fork(origin, replace(other, binding=replace(other.binding, model="other")), None, find_system).adopted == 2
    assert carry_out(origin, ledger) == 2 * (STEPS - 1)
    is_whole(query, FORK)


def test_a_point_that_the_settings_lead_past_is_refused_and_nothing_is_written(origin: Engine, query: Query) -> None:
    with pytest.raises(
        InputError, match=r"question q0 can't be forked there: at step 2 the record has retrieve .* read"
    ):
        fork(origin, forked(max_sentences=1), 3, find_system)
    assert query(select(runs.c.id)) == [{"id": ORIGIN}]
    assert fork(origin, forked(max_sentences=1), 2, find_system).adopted == 4


def test_a_fork_is_whole_once_its_origin_is_removed(origin: Engine, ledger: Ledger, query: Query) -> None:
    fork(origin, forked(**retrieving(2)), 3, find_system)
    carry_out(origin, ledger)
    before = contents(query, FORK, paragraph_sets)
    assert sum(removed.runs for removed in prune(origin, [ORIGIN])) == 1
    is_whole(query, FORK)
    assert agrees(origin, FORK)
    assert contents(query, FORK, paragraph_sets) == before
    with origin.connect() as connection:
        assert "Town number 1" in rebuild_prompt(connection, FORK, "q0", 1)


def test_a_run_that_is_being_removed_is_not_forked(origin: Engine) -> None:
    removing = prune(origin, [ORIGIN])
    next(removing)
    with pytest.raises(UnknownNameError, match="is being removed"):
        fork(origin, forked(), None, find_system)
    assert sum(removed.runs for removed in removing) == 1


def test_only_the_questions_named_are_forked(origin: Engine, query: Query) -> None:
    assert fork(origin, forked(), None, find_system, ["q1"]) == Forked(questions=1, adopted=STEPS, whole=1)
    asked = query(select(questions.c.key, questions.c.position).where(questions.c.run_id == FORK))
    assert asked == [{"key": "q1", "position": 0}]
    with pytest.raises(UnknownNameError, match="no question 'q7'"):
        fork(origin, forked("further"), None, find_system, ["q1", "q7"])


def test_a_fork_of_a_fork_names_who_computed_and_keeps_what_was_given(
    origin: Engine, ledger: Ledger, query: Query
) -> None:
    fork(origin, forked(**retrieving(2)), 3, find_system)
    carry_out(origin, ledger)
    again = forked("again", FORK, **retrieving(2), **reading("cot"))
    assert fork(origin, again, None, find_system).adopted == 2 * (STEPS - 1)
    assert carry_out(origin, ledger) == 2
    is_whole(query, "again")
    assert agrees(origin, "again")
    computed = select(steps.c.id).where(steps.c.adopted_from.is_(None)).scalar_subquery()
    assert (
        query(select(steps.c.id).where(steps.c.adopted_from.is_not(None), steps.c.adopted_from.not_in(computed))) == []
    )


def _execute(ledger: Ledger, message: Dispatch, outcome: Failure | None = None) -> list[Dispatch]:
    [claim] = ledger.claim([message])
    [following] = ledger.commit([completed(claim, outcome)])
    return following


def test_of_a_run_under_way_what_has_ended_is_taken_over(engine: Engine, ledger: Ledger, query: Query) -> None:
    first, _ = begin(engine, 2)
    [second] = _execute(ledger, first)
    ledger.claim(_execute(ledger, second))
    assert fork(engine, forked(), None, find_system) == Forked(questions=2, adopted=2, whole=0)
    cancel(engine, ORIGIN)
    assert fork(engine, forked("further"), None, find_system) == Forked(questions=2, adopted=2, whole=0)
    carry_out(engine, ledger)
    is_whole(query, FORK)
    is_whole(query, "further")


def test_a_failure_that_the_system_caught_is_taken_over_and_one_that_ended_the_question_is_not(
    engine: Engine, ledger: Ledger, query: Query
) -> None:
    [message] = begin(engine)
    [sentence] = _execute(ledger, message)
    [reader] = _execute(ledger, sentence, Failure(type="EmptyGenerationError", message="nothing"))
    _execute(ledger, reader, Failure(type="IndexBroken", message="no"))
    assert fork(engine, forked(), None, find_system).adopted == 2
    assert fork(engine, forked("given"), 3, find_system).adopted == 2
    assert carry_out(engine, ledger) == 2
    for run in (FORK, "given"):
        is_whole(query, run)
        assert agrees(engine, run)
        rows = query(select(steps.c.state, steps.c.failure).where(steps.c.run_id == run).order_by(steps.c.sequence))
        assert [row["state"] for row in rows] == ["finished", "failed", "finished"]


def test_a_fork_that_fails_can_be_tried_again(origin: Engine, ledger: Ledger, query: Query) -> None:
    fork(origin, forked(**reading("cot")), None, find_system, ["q0"])
    [message] = unsent(origin, "read")
    _execute(ledger, message, Failure(type="IndexBroken", message="no"))
    assert retry(origin, FORK, find_system, failed=True, blocked=False).failed == 1
    assert carry_out(origin, ledger) == 1
    is_whole(query, FORK)


def sampling(chains: int) -> Submission:
    """Self-consistency of so many chains, which are asked for together."""
    usual, spec = forked(ORIGIN), find_system("self-consistency")
    return replace(
        usual,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings(chains=chains)),
        shots={AnswerForm.COT: usual.shots[AnswerForm.COT]},
    )


@pytest.mark.parametrize(("chains", "adopted", "computed"), [(5, 3, 2), (2, 2, 0), (3, 3, 0)])
def test_of_steps_that_are_asked_for_together_those_are_taken_over_that_are_still_asked_for(
    chains: int, adopted: int, computed: int, engine: Engine, ledger: Ledger, query: Query
) -> None:
    begun = sampling(3)
    begin(engine, **{name: getattr(begun, name) for name in ("system", "system_version", "settings", "shots")})
    assert run_to_end(ledger, unsent(engine, "reason")) == 3
    assert fork(engine, replace(sampling(chains), id=FORK, origin=ORIGIN), None, find_system).adopted == adopted
    assert carry_out(engine, ledger) == computed
    is_whole(query, FORK)
    assert agrees(engine, FORK)


def test_of_steps_under_way_together_only_those_before_the_first_open_one_are_taken_over(
    engine: Engine, ledger: Ledger, query: Query
) -> None:
    begun = sampling(3)
    begin(engine, **{name: getattr(begun, name) for name in ("system", "system_version", "settings", "shots")})
    first, _, last = unsent(engine, "reason")
    for message in (first, last):
        _execute(ledger, message)
    assert fork(engine, replace(sampling(3), id=FORK, origin=ORIGIN), None, find_system).adopted == 1
    cancel(engine, ORIGIN)
    assert carry_out(engine, ledger) == 2
    is_whole(query, FORK)


def rethinking(**changes: Any) -> Submission:
    """Rethinking of three chains over a corpus."""
    spec = find_system("rethinking")
    usual = sampling(3)
    return replace(
        usual,
        system=spec.name,
        system_version=spec.version,
        settings=msgspec.to_builtins(spec.settings(**{"chains": 3, "retrieval_count": 2, "function": 2} | changes)),
        shots=submission().shots,
        binding=replace(usual.binding, embedder="e", entailer="n"),
        embedder_name="e",
        entailer_name="n",
    )


def weighed(claim: Claim) -> Completion:
    """How a step of rethinking ends."""
    match claim.action:
        case Embed(sentences=written, paragraphs=shown):
            return completed(claim, Embedded(similarities=((0.9,) * (len(shown) or len(written)),) * len(written)))
        case Entail():
            sure = 0.98 if "Town 0" in claim.action.hypothesis else 0.7
            return completed(claim, Entailed(entailment=sure, neutral=1 - sure, contradiction=0.0))
        case Reason(sample=int(number)):
            text = f"Town {number} has a bridge. So the answer is {'yes' if number else 'no'}."
            return completed(claim, replace(executed(claim), text=text, raw=text))
    return completed(claim)


def rethink(engine: Engine, ledger: Ledger) -> int:
    """Carries out what is open; returns how many steps that were."""
    done = 0
    messages = [message for kind in KINDS for message in unsent(engine, kind)]
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done += len(claims)
        messages = [m for following in ledger.commit([weighed(claim) for claim in claims]) for m in following]
    return done


def test_a_run_of_chains_and_evidence_is_weighed_anew_and_goes_on_with_a_variant(
    engine: Engine, ledger: Ledger, query: Query
) -> None:
    submit(engine, rethinking(), ask(1), find_system)
    steps_taken = rethink(engine, ledger)
    assert {row["kind"] for row in query(select(steps.c.kind))} == {"reason", "retrieve", "embed", "entail"}
    alone = replace(rethinking(voting=False), id=FORK, origin=ORIGIN)
    assert fork(engine, alone, None, find_system).adopted == steps_taken
    answers = query(select(questions.c.run_id, questions.c.answer).order_by(questions.c.id))
    assert [row["answer"] for row in answers] == ["yes", "no"]
    further = replace(rethinking(variant="selection"), id="further", origin=ORIGIN)
    assert fork(engine, further, None, find_system).adopted == steps_taken
    assert rethink(engine, ledger) > 0
    assert sum(removed.runs for removed in prune(engine, [ORIGIN])) == 1
    for run in (FORK, "further"):
        is_whole(query, run)
        assert agrees(engine, run)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose models have the names that runs here are submitted with, and one more."""
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    entries = [f'[models.{name}]\nengine = "scripted"\npath = "script.json"\n' for name in ("costless", "other")]
    (tmp_path / "models.toml").write_text("".join(entries))
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


def changed(query: Query, run: str) -> dict[str, Any]:
    [row] = query(select(runs).where(runs.c.id == run))
    return row


@pytest.mark.parametrize(
    ("options", "adopted"),
    [
        ((), 14),
        (("--set", "reader=cot"), 12),
        (("--set", "reading.reader=cot", "--set", "seed=3"), 2),
        (("--set", "model=other"), 2),
        (("--at", "3", "--set", "retrieval_count=6", "--question", "q1"), 3),
    ],
)
def test_the_command_says_what_is_taken_over_and_show_names_the_origin(
    options: Sequence[str], adopted: int, home: Path, origin: Engine, cotrail: Cotrail, query: Query
) -> None:
    done = cotrail("fork", "latest", *options, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["origin"], said["adopted"]) == (ORIGIN, adopted)
    record, before = changed(query, said["run"]), changed(query, ORIGIN)
    same = {"system", "dataset", "corpus", "corpus_revision", "profile", "temperature"}
    assert {name: record[name] for name in same} == {name: before[name] for name in same}
    assert record["provenance"]["python"] == platform.python_version()
    assert (record["model"] == before["model"]) == ("model=other" not in options)
    assert record["settings"]["retrieval"]["retrieval_count"] == (6 if "--at" in options else 4)
    at = "at 3" if "--at" in options else "at the first step that differs"
    assert f"costless, forked {at}" in cotrail("show", said["run"]).stdout


def test_a_fork_has_the_budgets_that_its_origin_has_by_now(
    home: Path, engine: Engine, ledger: Ledger, cotrail: Cotrail, query: Query
) -> None:
    first = {"question": {"steps": 2}, "run": {"tokens": 10**6}}
    run_to_end(ledger, begin(engine, provenance={**submission().provenance, BUDGETS: first}))
    assert cotrail("budget", ORIGIN, "--question-budget", "steps=30").exit_code == 0
    carry_out(engine, ledger)
    done = cotrail("fork", ORIGIN, "--json")
    assert done.exit_code == 0, done.output
    for run in (json.loads(done.stdout)["run"], begin_repeating(ORIGIN, share=1.0).run):
        budgets = changed(query, run)["provenance"][BUDGETS]
        assert budgets == {"question": {"steps": 30}, "run": {"tokens": 10**6}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "takes over 14 steps of 2 questions of costless, which are all there are: nothing is computed."),
        (("--at", "-1"), "takes over 12 steps of 2 questions of costless."),
    ],
)
def test_the_command_says_whether_anything_is_left_to_compute(
    options: Sequence[str], said: str, home: Path, origin: Engine, cotrail: Cotrail
) -> None:
    assert said in cotrail("fork", "latest", *options).stderr


def test_a_trace_marks_what_was_taken_over(home: Path, origin: Engine, cotrail: Cotrail) -> None:
    cotrail("fork", "latest", "--set", "reader=cot")
    traced = json.loads(cotrail("trace", "latest", "1", "--json").stdout)
    assert [step["adopted"] for step in traced["steps"]] == [True] * 6 + [False]
    assert "adopted from another run · fork" in cotrail("trace", "latest", "1").stdout
    assert "adopted from run costless" in cotrail("show", "latest").stdout
    shown = json.loads(cotrail("show", "latest", "--json").stdout)
    assert shown["adopted_from"] == "run costless"
    assert (shown["cost"]["adopted"]["steps"], shown["cost"]["made"]["steps"]) == (12, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--set", "readers=cot"),
            "there is no 'readers' to set in run costless (did you mean reader?); `cotrail systems ircot` lists",
        ),
        (("--set", "reader"), "'reader' sets nothing: write KEY=VALUE"),
        (("--set", "reader=maybe"), "settings of ircot: "),
        (("--set", "seed=many"), "this run: `seed` must be a whole number"),
        (("--set", "model=none"), "none"),
        (("--set", "embedder=small"), "needs no embedder: name none"),
        (("--at", "reader"), "'reader' is no step to fork at"),
        (("--question", "q9"), "has no question 'q9'"),
        (("--at", "99"), "no question has a step 99 to fork at; the longest has steps 0 to 6, or -1 to -7"),
        (("--at", "-99"), "no question has a step -99 to fork at"),
        (("--at", "lookup"), "no question has a lookup step to fork at; there are: read, reason, retrieve"),
        (("--at", "3", "--set", "max_sentences=1"), "question q0 can't be forked there"),
    ],
)
def test_what_can_not_be_is_refused_in_words(
    options: Sequence[str], said: str, home: Path, origin: Engine, cotrail: Cotrail, query: Query
) -> None:
    refused = cotrail("fork", "latest", *options)
    assert isinstance(refused.exception, InputError)
    assert said in str(refused.exception)
    assert len(query(select(runs.c.id))) == 1


def test_the_last_part_of_a_path_will_do_where_it_is_but_one(origin: Engine) -> None:
    with origin.connect() as connection:
        record = read_run(connection, ORIGIN)
    given = ["reader=cot", "settings.max_sentences=3", "temperature=0.5", "model=135"]
    assert resolve_changes(record, parse_changes(given)) == {
        "settings.reading.reader": "cot",
        "settings.max_sentences": 3,
        "temperature": 0.5,
        "model": "135",
    }
    twice = replace(record, settings={"reading": {"tokens": 1}, "pages": {"tokens": 2}, "temperature": 0.7})
    assert resolve_changes(twice, {"settings.temperature": 0.9}) == {"settings.temperature": 0.9}
    with pytest.raises(InputError, match=r"'tokens' may be reading\.tokens or pages\.tokens; write the whole path"):
        resolve_changes(twice, {"tokens": 3})
