"""Forks with an edited step on a real store: what is carried out, what is recorded, and that it verifies."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import IntegrityError

from benchmarks.costless import ANSWER, SENTENCES
from cotrail.audit.bundles import bundle_pieces, read_bundle, write_bundle
from cotrail.audit.provenance import provenance
from cotrail.audit.verification import verify
from cotrail.core.edits import StepEdit
from cotrail.core.results import Failure
from cotrail.core.views import Facts, Note, WrittenText
from cotrail.errors import InputError
from cotrail.models.commands.forking import fork
from cotrail.models.commands.retrying import retry
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.repeated_steps import read_candidates
from cotrail.models.queries.traces import find_question, read_question, rebuild_prompt
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import paragraph_sets, questions, runs, sentences, steps
from cotrail.services.results.steps import shown_steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, completed, run_to_end, unsent
from tests.integration.test_forking import FORK, ORIGIN, agrees, carry_out, forked, home, is_whole, reading

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("verified")

BY = {"by": "kim"}
SENTENCE = "That engineer was born in Sild."


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


@pytest.fixture
def origin(engine: Engine, ledger: Ledger) -> Engine:
    """The store with a run of two questions, all finished."""
    run_to_end(ledger, begin(engine, 2))
    return engine


def edit(engine: Engine, at: int, name: str = FORK, of: str = ORIGIN, **parts: str) -> None:
    """Forks the first question with one step edited."""
    fork(engine, forked(name, of), at, find_system, ["q0"], StepEdit(**parts, **BY))


def step(query: Query, run: str, sequence: int) -> dict[str, Any]:
    [row] = query(select(steps).where(steps.c.run_id == run, steps.c.sequence == sequence, questions_of(run)))
    return row


def questions_of(run: str) -> Any:
    first = select(questions.c.id).where(questions.c.run_id == run, questions.c.key == "q0").scalar_subquery()
    return steps.c.question_id == first


def test_a_query_is_searched_for_in_place_of_the_systems(origin: Engine, ledger: Ledger, query: Query) -> None:
    edit(origin, 2, query="Who was born in Sild?")
    assert carry_out(origin, ledger) == STEPS - 2
    asked, edited = step(query, ORIGIN, 2), step(query, FORK, 2)
    assert (edited["request"], edited["fingerprint"]) == (asked["request"], asked["fingerprint"])
    assert edited["edit"] == {"query": "Who was born in Sild?", "by": "kim"}
    searched = query(select(paragraph_sets.c.query).where(paragraph_sets.c.step_id == edited["id"]).distinct())
    assert searched == [{"query": "Who was born in Sild?"}]
    is_whole(query, FORK)
    assert agrees(origin, FORK)


def test_a_text_is_taken_for_what_the_model_wrote(origin: Engine, ledger: Ledger, query: Query) -> None:
    edit(origin, 3, text=f" {SENTENCE} ")
    assert carry_out(origin, ledger) == STEPS - 3
    edited, following = step(query, FORK, 3), step(query, FORK, 4)
    assert (edited["result"]["text"], edited["generated_tokens"], edited["adopted_from"]) == (SENTENCE, 0, None)
    assert following["request"]["query"] == SENTENCE
    chain = select(sentences.c.text).where(sentences.c.question_id == edited["question_id"])
    assert [row["text"] for row in query(chain.order_by(sentences.c.position))] == [
        SENTENCES[0],
        SENTENCE,
        SENTENCES[2],
    ]
    is_whole(query, FORK)
    assert agrees(origin, FORK)


def test_a_text_that_ends_the_chain_ends_it(origin: Engine, ledger: Ledger, query: Query) -> None:
    edit(origin, 1, text="So the answer is: Sild.")
    carry_out(origin, ledger)
    kinds = select(steps.c.kind).where(steps.c.run_id == FORK).order_by(steps.c.sequence)
    assert [row["kind"] for row in query(kinds)] == ["retrieve", "reason", "read"]
    assert agrees(origin, FORK)


def test_a_prompt_is_shown_in_place_of_the_systems(origin: Engine, ledger: Ledger, query: Query) -> None:
    with origin.connect() as connection:
        asked = rebuild_prompt(connection, ORIGIN, "q0", 3)
    shown = asked.replace("Q: Where was builder 0 born?\nA:", "Q: In which town was builder 0 born?\nA:")
    assert shown != asked
    edit(origin, 3, prompt=shown)
    carry_out(origin, ledger)
    edited = step(query, FORK, 3)
    assert edited["request"] == step(query, ORIGIN, 3)["request"]
    assert edited["result"]["prompt_digest"] != step(query, ORIGIN, 3)["result"]["prompt_digest"]
    with origin.connect() as connection:
        assert rebuild_prompt(connection, FORK, "q0", 3) == shown
    is_whole(query, FORK)
    assert agrees(origin, FORK)


@pytest.mark.parametrize(
    ("at", "parts", "said"),
    [
        (2, {"text": "a"}, "of the kind retrieve, which has no text"),
        (3, {"query": "a"}, "of the kind reason, which has no query"),
        (3, {"text": "a\nb"}, "one line"),
        (2, {"query": " "}, "the query is empty"),
    ],
)
def test_what_a_step_does_not_have_is_refused_and_nothing_recorded(
    at: int, parts: dict[str, str], said: str, origin: Engine, query: Query
) -> None:
    with pytest.raises(InputError, match=said):
        edit(origin, at, **parts)
    assert [row["id"] for row in query(select(runs.c.id))] == [ORIGIN]


def test_a_step_behind_one_that_is_under_way_is_not_edited(engine: Engine, ledger: Ledger) -> None:
    [message] = begin(engine)
    [claim] = ledger.claim([message])
    with pytest.raises(InputError, match="not all steps before it have ended"):
        edit(engine, 1, text="a")
    [[following]] = ledger.commit([completed(claim)])
    edit(engine, 1, text=SENTENCE)
    run_to_end(ledger, [following])
    carry_out(engine, ledger)
    assert agrees(engine, FORK)


def test_a_fork_of_a_fork_takes_an_edited_step_over_as_such(origin: Engine, ledger: Ledger, query: Query) -> None:
    edit(origin, 3, text=SENTENCE)
    carry_out(origin, ledger)
    assert fork(origin, forked("again", FORK, **reading("cot")), None, find_system).adopted == STEPS - 1
    carry_out(origin, ledger)
    first, copied = step(query, FORK, 3), step(query, "again", 3)
    assert (copied["edit"], copied["adopted_from"]) == (first["edit"], first["id"])
    assert agrees(origin, "again")
    assert fork(origin, forked("before", FORK), 3, find_system).adopted == 3
    carry_out(origin, ledger)
    assert step(query, "before", 3)["edit"] is None
    assert step(query, "before", 3)["result"]["text"] == SENTENCES[1]


def test_an_edited_step_that_fails_is_tried_again_as_it_was_edited(
    origin: Engine, ledger: Ledger, query: Query
) -> None:
    edit(origin, 6, prompt="Q: Who?\nA:")
    [message] = unsent(origin, "read")
    [claim] = ledger.claim([message])
    ledger.commit([completed(claim, Failure(type="IndexBroken", message="no"))])
    assert agrees(origin, FORK)
    assert retry(origin, FORK, find_system, failed=True, blocked=False).failed == 1
    assert carry_out(origin, ledger) == 1
    assert step(query, FORK, 6)["edit"] == {"prompt": "Q: Who?\nA:", "by": "kim"}
    assert agrees(origin, FORK)


def test_the_edit_of_a_step_never_changes(origin: Engine) -> None:
    edit(origin, 3, text=SENTENCE)
    for change in ("edit = NULL", """edit = '{"text": "a", "by": "kim"}'"""):
        with origin.connect() as connection, pytest.raises(IntegrityError, match="part of the audit trail"):
            connection.execute(text(f"UPDATE steps SET {change} WHERE run_id = '{FORK}' AND edit IS NOT NULL"))


@pytest.mark.amends
@pytest.mark.parametrize(
    "change",
    ["edit = NULL", """edit = '{"text": "another", "by": "kim"}'""", """edit = jsonb_set(edit, '{by}', '"lee"')"""],
)
def test_a_changed_edit_is_found(change: str, origin: Engine, ledger: Ledger) -> None:
    edit(origin, 3, text=SENTENCE)
    carry_out(origin, ledger)
    with origin.begin() as connection:
        connection.execute(text("SET LOCAL cotrail.amending = 'on'"))
        connection.execute(text(f"UPDATE steps SET {change} WHERE run_id = '{FORK}' AND edit IS NOT NULL"))
    with origin.connect() as connection:
        [found] = verify(read_trail(connection, FORK)).findings
    assert (found.table, found.what, found.question, found.step) == ("steps", "changed", "q0", 3)


def test_a_bundle_of_an_edited_fork_verifies_and_names_the_edit(origin: Engine, ledger: Ledger, tmp_path: Path) -> None:
    edit(origin, 2, query="Who was born in Sild?")
    carry_out(origin, ledger)
    assert FORK in close_runs(origin)
    path = tmp_path / "fork.audit.jsonl.zst"
    with origin.connect() as connection:
        write_bundle(path, bundle_pieces(read_trail(connection, FORK), FORK, "0"), FORK)
    checked = verify(read_bundle(path), bundled=True)
    assert (checked.findings, checked.closed) == ((), True)
    [named] = checked.edits
    assert (named.question, named.step, named.edit) == ("q0", 2, "query edited by kim")


def test_provenance_names_who_edited_a_step(origin: Engine, ledger: Ledger) -> None:
    edit(origin, 3, text=SENTENCE)
    carry_out(origin, ledger)
    with origin.connect() as connection:
        document = provenance(read_trail(connection, FORK, [find_question(connection, FORK, "q0")]))
    agents = {name: element.get("prov:label") for name, element in document["agent"].items()}
    assert agents["cotrail:agent/person/kim"] == "kim"
    [activity] = [each for each in document["activity"].values() if "cotrail:edit" in each]
    assert json.loads(activity["cotrail:edit"]) == {"text": SENTENCE, "by": "kim"}


def test_a_trace_says_what_stands_in_place_of_what(origin: Engine, ledger: Ledger) -> None:
    edit(origin, 2, query="Who was born in Sild?")
    carry_out(origin, ledger)
    with origin.connect() as connection:
        traced = read_question(connection, FORK, "q0")
    assert traced.steps[2].query == "Who was born in Sild?"
    shown = list(shown_steps(traced))[2]
    assert shown.view.asked == SENTENCES[0]
    assert "searched for “Who was born in Sild?” instead, as kim wrote" in str(shown.view.parts[0])
    with origin.connect() as connection:
        assert read_candidates(connection, FORK, ["retrieve"])["q0"] == [4]


def test_nobody_counted_the_tokens_of_a_text_that_was_given(origin: Engine, ledger: Ledger) -> None:
    edit(origin, 3, text=SENTENCE)
    carry_out(origin, ledger)
    with origin.connect() as connection:
        given, following = list(shown_steps(read_question(connection, FORK, "q0")))[3:6:2]
    assert [type(part) for part in given.view.parts] == [Note, WrittenText]
    assert [type(part) for part in following.view.parts] == [WrittenText, Facts]


def test_the_command_forks_with_an_edit_and_says_so(
    home: Path, origin: Engine, ledger: Ledger, cotrail: Cotrail, query: Query
) -> None:
    done = cotrail("fork", ORIGIN, "--question", "q0", "--at", "3", "--text", SENTENCE, "--json")
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)["run"]
    carry_out(origin, ledger)
    assert step(query, run, 3)["edit"] == {"text": SENTENCE, "by": "local"}
    assert "written by local, and not by the model" in cotrail("trace", run, "q0").stdout
    assert "text edited by local, of question q0" in cotrail("show", run).stdout
    assert "question q0: step 3 edited by a person" in cotrail("replay", run).stdout
    close_runs(origin)
    checked = cotrail("audit", "verify", run)
    assert (checked.exit_code, "question q0, step 3: text edited by local" in checked.stdout) == (0, True)
    assert query(select(questions.c.answer).where(questions.c.run_id == run)) == [{"answer": ANSWER}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--text", "a"), "an edit is of one step of one question"),
        (("--text", "a", "--at", "3"), "an edit is of one step of one question"),
        (
            ("--text", "a", "--at", "3", "--question", "q0", "--question", "q1"),
            "an edit is of one step of one question",
        ),
        (("--text", "a", "--query", "b", "--at", "3", "--question", "q0"), "text and query is given"),
        (("--query", "a", "--at", "reason", "--question", "q0"), "which has no query"),
        (("--query", "a", "--at", "99", "--question", "q0"), "no question has a step 99"),
        (("--text", "a\0b", "--at", "3", "--question", "q0"), "NUL"),
    ],
)
def test_the_command_refuses_what_is_no_edit(
    options: tuple[str, ...], said: str, home: Path, origin: Engine, cotrail: Cotrail
) -> None:
    refused = cotrail("fork", ORIGIN, *options)
    assert isinstance(refused.exception, InputError)
    assert said in str(refused.exception)
