"""Marks of sentences in the store, and `cotrail annotate` in the terminal and by file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import typer
from msgspec.structs import replace
from sqlalchemy import Connection, Engine
from typer.testing import CliRunner, Result

from benchmarks.contenders.cotrail import submission
from benchmarks.costless import SENTENCES, CostlessModel
from cotrail.cli.commands.annotate import annotate
from cotrail.configuration.settings import settings
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Retrieved
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.experiments.ircot.cells import CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.paper import read_cell
from cotrail.evaluation.experiments.ircot.tables import examples
from cotrail.evaluation.metrics.factual_errors import SentenceMark, factual_errors
from cotrail.models.commands.annotating import forget, record
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.annotations import read_annotations, read_chains, read_marks
from cotrail.models.queries.runs import read_run
from cotrail.services.runs.conducting import recorded_run
from cotrail.systems.registry import find_system
from tests.integration.stepping import unsent
from tests.unit.made_results import line, made

Begun = Callable[..., str]
Annotate = Callable[..., Result]

FACTS = SENTENCES[:2]
READ = "Ink stains paper. Paper is pulp. So the answer is: pulp."
PARAGRAPHS = [
    Paragraph(id="p0", title="Bridges", text="What the question finds."),
    Paragraph(id="p1", title="An engineer", text="The first sentence finds this."),
    Paragraph(id="p2", title="Grayle", text="And this is for the second."),
]
PASSAGE = GoldParagraph(title="Ink", text="What the question is about.")


@pytest.fixture
def begun(engine: Engine) -> Begun:
    """Submits a run over so many questions; `reader` and `system` as in a run file."""

    def begun(run: str = "run", asked: int = 2, system: str = "ircot", reader: str = "direct") -> str:
        spec = find_system(system)
        chosen = msgspec.to_builtins(spec.settings())
        chosen["reading"] = chosen["reading"] | {"reader": reader}
        given = replace(submission(), id=run, system=spec.name, system_version=spec.version, settings=chosen)
        pinned = PASSAGE if system == "no-retrieval" else None
        submit(
            engine,
            given,
            [Question(id=f"q{n}", text=f"Who built {n}?", pinned=pinned) for n in range(asked)],
            find_system,
        )
        return run

    return begun


@pytest.fixture
def finished(begun: Begun, engine: Engine) -> Begun:
    """The same, every step carried out; the reader writes a chain, whatever its form."""

    def finished(*arguments: object, **options: object) -> str:
        run = begun(*arguments, **options)
        ledger = Ledger(engine, "hands@here", 60.0, find_system)
        messages = [message for kind in ("retrieve", "read") for message in unsent(engine, kind)]
        while messages:
            claims = [claim for claim in ledger.claim(messages) if claim is not None]
            done = [Completion(claim=claim, outcome=_outcome(claim), milliseconds=1.0) for claim in claims]
            messages = [message for following in ledger.commit(done) for message in following]
        return run

    return finished


def _outcome(claim: Claim) -> Outcome:
    action = claim.action
    if isinstance(action, Retrieve):
        place = SENTENCES.index(action.query) + 1 if action.query in SENTENCES else 0
        return Retrieved(hits=(Hit(paragraph=PARAGRAPHS[place], rank=1, score=1.0),))
    assert isinstance(action, Reason | Read)
    written = CostlessModel().generate(GenerationRequest(action.prompt, action.until, action.max_tokens))
    return replace(written, text=READ, raw=READ) if isinstance(action, Read) else written


@pytest.fixture
def cotrail(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Annotate]:
    """`cotrail annotate` in this process, with what is typed line by line."""
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    monkeypatch.setenv("COTRAIL_DATABASE_URL", url)
    monkeypatch.setenv("LOGNAME", "ann")
    settings.cache_clear()
    app = typer.Typer()
    app.command()(annotate)

    def cotrail(*arguments: object, typed: str = "") -> Result:
        lines = "".join(f"{line}\n" for line in typed.split("|"))
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=lines)

    yield cotrail
    settings.cache_clear()


def mark(question: str, position: int, verdict: str, annotator: str = "ann", note: str = "") -> SentenceMark:
    return SentenceMark(
        question_id=question, position=position, annotator=annotator, is_true=verdict == "true", note=note
    )


def stored(engine: Engine, run: str = "run") -> list[tuple[str, int, str, bool, str]]:
    with engine.connect() as connection:
        return [(m.question_id, m.position, m.annotator, m.is_true, m.note) for m in read_marks(connection, run)]


def errors(engine: Engine, run: str = "run") -> dict[str, bool]:
    with engine.connect() as connection:
        return factual_errors(read_annotations(connection, run))


# The store.


def test_marks_are_stored_with_who_and_when_and_a_second_one_replaces_the_first(
    engine: Engine, finished: Begun
) -> None:
    finished()
    for marks in (
        [mark("q0", 0, "true"), mark("q0", 1, "true")],
        [mark("q0", 1, "untrue", note="No."), mark("q0", 0, "true")],
    ):
        with engine.begin() as connection:
            record(connection, "run", marks)
    assert stored(engine) == [("q0", 0, "ann", True, ""), ("q0", 1, "ann", False, "No.")]
    with engine.connect() as connection:
        first, second = read_marks(connection, "run")
    assert first.marked_at
    assert second.marked_at
    assert first.marked_at < second.marked_at


def test_annotators_have_marks_of_their_own(engine: Engine, finished: Begun) -> None:
    finished()
    with engine.begin() as connection:
        record(connection, "run", [mark("q0", 0, "true"), mark("q0", 0, "untrue", "bob"), mark("q1", 1, "untrue")])
        record(connection, "run", [mark("q0", 1, "true"), mark("q0", 0, "true", "cem")])
        forget(connection, "run", SentenceMark, "q1", position=1, annotator="ann")
        assert [each.is_true for each in read_marks(connection, "run", "bob")] == [False]
    assert errors(engine) == {"q0": False}


def test_a_mark_of_a_question_that_the_run_has_not_is_refused_and_nothing_is_stored(
    engine: Engine, finished: Begun
) -> None:
    finished()
    with pytest.raises(UnknownNameError, match="no question 'q9'"), engine.begin() as connection:
        record(connection, "run", [mark("q0", 0, "true"), mark("q9", 0, "true")])
    assert stored(engine) == []


def test_a_sentence_is_judged_with_the_paragraphs_that_were_there_when_it_was_written(
    engine: Engine, finished: Begun
) -> None:
    finished()
    with engine.connect() as connection:
        [chain] = read_chains(connection, read_run(connection, "run"), ["q1"])
    assert chain.sentences == SENTENCES
    titles = [each.title for each in PARAGRAPHS]
    assert [[each.title for each in shown] for shown in chain.paragraphs] == [titles[:1], titles[:2], titles[:3]]


@pytest.mark.parametrize("system", ["one-step", "no-retrieval"])
def test_without_a_chain_of_its_own_a_system_is_judged_by_its_readers(
    system: str, engine: Engine, finished: Begun
) -> None:
    finished(system=system, reader="cot")
    with engine.connect() as connection:
        [chain] = read_chains(connection, read_run(connection, "run"), ["q0"])
    assert chain.sentences == ("Ink stains paper.", "Paper is pulp.", "So the answer is: pulp.")
    title = PASSAGE.title if system == "no-retrieval" else PARAGRAPHS[0].title
    assert [[each.title for each in shown] for shown in chain.paragraphs] == [[title]] * 3


def with_chains(connection: Connection, result: CellResult) -> CellResult:
    """The result with the chains that its run has recorded."""
    return replace(result, chains=read_cell(result.cell, recorded_run(connection, result.run)).chains)


def test_the_chains_of_the_first_questions_that_tell_systems_apart_are_read_with_what_people_say_of_them(
    engine: Engine, finished: Begun
) -> None:
    systems: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")
    runs = [finished(system, asked=5, system=system, reader="cot") for system in systems]
    with engine.begin() as connection:
        record(connection, "one-step", [mark("q2", 0, "true"), mark("q2", 1, "untrue")])
    results = [
        replace(made(line(system, reader="cot"), [0, 1, 0, 0, 0] if system != "ircot" else [1] * 5), run=run)
        for run, system in zip(runs, systems, strict=True)
    ]
    with engine.connect() as connection:
        results = [with_chains(connection, result) for result in results]
    table = examples(results)
    assert table is not None
    assert [row.values["question"] for row in table.rows] == ["Who built 0?", "Who built 2?", "Who built 3?"]
    _, once, interleaved = results
    read = ("Ink stains paper.", "Paper is pulp.", "So the answer is: pulp.")
    assert once.chains["q2"] == ExampleChain(question="Who built 2?", answers=(), sentences=read, untrue=frozenset({1}))
    assert interleaved.chains["q2"].sentences == SENTENCES


def test_a_question_that_a_run_has_not_finished_is_no_example(engine: Engine, begun: Begun, finished: Begun) -> None:
    systems: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")
    runs = [finished(system, system=system, reader="cot") for system in systems[1:]]
    runs = [begun("no-retrieval", system="no-retrieval", reader="cot"), *runs]
    scored = [[0, 0], [0, 0], [1, 1]]
    of = [made(line(system, reader="cot"), values) for system, values in zip(systems, scored, strict=True)]
    with engine.connect() as connection:
        results = [with_chains(connection, replace(each, run=run)) for each, run in zip(of, runs, strict=True)]
    assert [len(result.chains) for result in results] == [0, 2, 2]
    assert examples(results) is None


def test_an_unfinished_question_has_no_chain_yet(engine: Engine, begun: Begun) -> None:
    begun()
    with engine.connect() as connection:
        assert list(read_chains(connection, read_run(connection, "run"), ["q0", "q1"])) == []


# The terminal.


def test_what_is_typed_is_stored_sentence_by_sentence(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    said = cotrail("run", typed="y|n it was two engineers|Y|n")
    assert said.exit_code == 0
    assert stored(engine) == [
        ("q0", 0, "ann", True, ""),
        ("q0", 1, "ann", False, "it was two engineers"),
        ("q1", 0, "ann", True, ""),
        ("q1", 1, "ann", False, ""),
    ]
    assert "Who built 0?" in said.stdout
    assert all(fact in said.stdout for fact in FACTS)
    assert PARAGRAPHS[1].title in said.stdout
    assert "ann has marked 4 of 4 sentences in 2 chains" in said.stdout
    assert "2 chains judged so far, 2 with a factual error" in said.stdout


def test_quitting_loses_nothing_and_starting_again_goes_on(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    cotrail("run", typed="y|q")
    assert stored(engine) == [("q0", 0, "ann", True, "")]
    again = cotrail("run", typed="n|q").stdout
    assert "sentence 2 of question q0; 3 sentences to go" in again
    assert "sentence 1 of question q0;" not in again
    assert [each[:2] for each in stored(engine)] == [("q0", 0), ("q0", 1)]


def test_what_is_cut_short_is_stored_up_to_there(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    assert cotrail("run", typed="y|y").exit_code != 0
    assert [each[:2] for each in stored(engine)] == [("q0", 0), ("q0", 1)]


def test_undoing_goes_back_and_takes_the_mark_away(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    cotrail("run", typed="u|y|n|u|u|n|s|u|q")
    assert stored(engine) == [("q0", 0, "ann", False, "")]


def test_skipped_sentences_are_left_for_another_time(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    assert "1 of 4 sentences" in cotrail("run", typed="s|y|s|s").stdout
    assert "3 sentences to go" in cotrail("run", typed="q").stdout


def test_what_means_nothing_is_asked_again(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    finished()
    said = cotrail("run", typed="maybe|q now|y\tx|yes|y|q").stdout
    assert said.count("y true · n not true") > 4
    assert [each[:2] for each in stored(engine)] == [("q0", 0)]


def test_the_same_questions_are_sampled_in_every_run(engine: Engine, finished: Begun, cotrail: Annotate) -> None:
    for run in (finished("one", 9), finished("two", 9, system="one-step", reader="cot")):
        cotrail(run, "--sample", 3, "--seed", 4, "--annotator", "bob", typed="|".join("yyyyyy"))
    one, two = ({key for key, *_ in stored(engine, run)} for run in ("one", "two"))
    assert one == two
    assert len(one) == 3


@pytest.mark.parametrize("reader", ["direct", "cot"])
def test_a_run_without_chains_or_not_finished_is_refused(
    reader: str, begun: Begun, finished: Begun, cotrail: Annotate
) -> None:
    begun(reader=reader) if reader == "cot" else finished(system="one-step", reader=reader)
    refused = cotrail("run", typed="y")
    assert isinstance(refused.exception, InputError)
    assert "no chain of thought to judge in run run: of 2 sampled questions" in str(refused.exception)


# Files.


def test_a_file_goes_out_is_filled_in_and_comes_back(
    engine: Engine, finished: Begun, cotrail: Annotate, tmp_path: Path
) -> None:
    finished()
    path = tmp_path / "marks.jsonl"
    cotrail("run", typed="y|q")
    assert f"cotrail annotate run --import {path}" in cotrail("run", "--export", path).stdout
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["question_id"], row["position"], row["is_true"]) for row in rows] == [
        ("q0", 0, True),
        ("q0", 1, None),
        ("q1", 0, None),
        ("q1", 1, None),
    ]
    rows[1] |= {"is_true": False, "note": "Two did."}
    rows[2] |= {"is_true": True}
    path.write_text("\n".join(json.dumps(row) for row in rows))
    said = cotrail("run", "--import", path, "--annotator", "bob")
    assert "bob has marked 3 of 4 sentences in 2 chains" in said.stdout
    assert [each for each in stored(engine) if each[2] == "bob"] == [
        ("q0", 0, "bob", True, ""),
        ("q0", 1, "bob", False, "Two did."),
        ("q1", 0, "bob", True, ""),
    ]
    assert errors(engine) == {"q0": True}


def test_a_file_with_a_wrong_line_stores_nothing(
    engine: Engine, finished: Begun, cotrail: Annotate, tmp_path: Path
) -> None:
    finished()
    path = tmp_path / "marks.jsonl"
    cotrail("run", "--export", path)
    rows = [json.loads(line) | {"is_true": True} for line in path.read_text().splitlines()]
    path.write_text("\n".join(json.dumps(row) for row in [*rows, rows[0] | {"question_id": "q9"}]))
    refused = cotrail("run", "--import", path)
    assert isinstance(refused.exception, InputError)
    assert f"{path}:5: run run has no question 'q9'" in str(refused.exception)
    assert stored(engine) == []


def test_a_file_of_another_run_is_refused(finished: Begun, cotrail: Annotate, tmp_path: Path) -> None:
    finished("one")
    finished("two")
    cotrail("one", "--export", tmp_path / "marks.jsonl")
    refused = cotrail("two", "--import", tmp_path / "marks.jsonl")
    assert "marks.jsonl:1: this is a mark of run 'one', not of 'two'" in str(refused.exception)


def test_a_file_goes_out_or_comes_in_but_not_both(finished: Begun, cotrail: Annotate, tmp_path: Path) -> None:
    finished()
    refused = cotrail("run", "--export", tmp_path / "a", "--import", tmp_path / "b")
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "a").exists()
