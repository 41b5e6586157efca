"""Which questions' chains are shown side by side, and how (tables 2 and 5 of IRCoT)."""

import io
from collections.abc import Sequence

from msgspec.structs import replace
from rich.console import Console

from cotrail.cli.commands.experiment import print_report
from cotrail.evaluation.experiments.ircot.cells import CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.paper import report as ircot_report
from cotrail.evaluation.experiments.ircot.tables import build_tables, contrasts, examples
from cotrail.evaluation.metrics.factual_errors import AnnotatedChain, SentenceMark, untrue
from cotrail.services.results.reports.documents import report_page
from cotrail.services.results.reports.sheets import as_markdown, sheet
from tests.unit.made_results import line, made

SYSTEMS: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")
CHAIN = ExampleChain(
    question="Where was Ada's bridge built?",
    answers=("Rome", "Roma"),
    sentences=("Ada built it in Paris.", "So the answer is: Rome."),
)


def runs(*scores: Sequence[float], **labels: str) -> list[CellResult]:
    """A run of each system with a chain-of-thought reader; one list of scores each."""
    lines = [line(system, **{"reader": "cot"} | labels) for system in SYSTEMS]  # type: ignore[arg-type]
    return [made(of, values) for of, values in zip(lines, scores, strict=True)]


def chosen(results: Sequence[CellResult]) -> list[tuple[str, ...]]:
    return [questions for _, questions in contrasts(results)]


def test_those_are_chosen_that_ircot_answers_right_and_the_others_do_not_in_the_datasets_order() -> None:
    results = runs([0, 1, 0, 0.9, 0], [0.5, 0, 1, 0.8, 0], [1, 1, 1, 1, 0.9])
    assert chosen(results) == [("q0", "q3")]


def test_there_is_nothing_to_tell_apart_without_all_three_or_without_a_chain_of_each_reader() -> None:
    scores = ([0.0], [0.0], [1.0])
    assert chosen(runs(*scores)) == [("q0",)]
    assert chosen(runs(*scores)[1:]) == []
    assert chosen(runs(*scores, reader="direct")) == []
    assert chosen(runs(*scores, goal="retrieval")) == []
    assert chosen(runs(*scores, demonstrations="musique")) == []


def test_the_first_demonstration_set_decides() -> None:
    second = [replace(run, cell=replace(run.cell, demonstration_set=2)) for run in runs([0, 0], [0, 0], [1, 0])]
    results = [run for both in zip(second, runs([0, 0], [0, 0], [0, 1]), strict=True) for run in both]
    assert chosen(results) == [("q1",)]


def shown() -> list[CellResult]:
    results = runs([0, 0], [0, 0], [1, 1])
    chains = (replace(CHAIN, untrue=frozenset({0})), CHAIN, CHAIN)
    return [replace(run, chains={"q1": chain}) for run, chain in zip(results, chains, strict=True)]


def test_chains_stand_side_by_side_with_their_untrue_sentences_marked() -> None:
    table = examples(shown())
    assert table is not None
    assert [column.title for column in table.columns] == ["Dataset", "Model", "Question", "NoR", "OneR", "IRCoT"]
    (row,) = table.rows
    assert row.values == {
        "place": "hotpotqa",
        "model": "tiny-1b",
        "question": "Where was Ada's bridge built? (Rome / Roma)",
        "no-retrieval": "[untrue: Ada built it in Paris.] So the answer is: Rome.",
        "one-step": "Ada built it in Paris. So the answer is: Rome.",
        "ircot": "Ada built it in Paris. So the answer is: Rome.",
    }
    assert "first 3 questions that IRCoT answers exactly right and OneR and NoR don't" in table.notes[0]
    assert "people found untrue" in table.notes[1]


def test_without_marks_nothing_is_said_of_untrue_sentences() -> None:
    table = examples([replace(run, chains={"q1": CHAIN}) for run in shown()])
    assert table is not None
    assert len(table.notes) == 1


def test_no_table_comes_of_results_without_examples() -> None:
    assert examples(runs([0], [0], [1])) is None
    assert all(table.name != "examples" for table in build_tables(runs([0], [0], [1])))


def test_every_report_has_them_and_lines_stay_readable() -> None:
    table = examples(shown())
    assert table is not None
    text, report = sheet(table), ircot_report(shown())
    assert "Ada built it in Paris. So the answer is: Rome." in as_markdown(text)
    assert '">Ada built it in Paris. So the answer is: Rome.</td>' in report_page("e", report)
    out = io.StringIO()
    print_report(report.summary, tuple(map(sheet, report.tables)), Console(file=out, width=100))
    lines = [each for each in out.getvalue().splitlines() if "Ada built" in each]
    assert lines
    assert all(len(each) < 220 for each in lines)


def test_a_sentence_is_untrue_where_most_people_found_it_so() -> None:
    marks = tuple(
        SentenceMark(question_id="q", position=position, annotator=who, is_true=is_true)
        for position, who, is_true in (
            (0, "a", False),
            (1, "a", True),
            (1, "b", False),
            (2, "a", True),
            (3, "a", False),
        )
    )
    assert untrue(AnnotatedChain(question_id="q", sentences=("A.", "B.", "C."), marks=marks)) == {0, 1}
