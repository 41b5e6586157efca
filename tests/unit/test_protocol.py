"""The runs that an experiment has, and how K and M are chosen."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.experiments.ircot.cells import Cell, Line
from cotrail.evaluation.experiments.ircot.protocol import (
    DemonstrationFiles,
    Grid,
    IRCoTExperiment,
    IRCoTFiles,
    IRCoTProtocol,
    ModelUse,
    choose,
    search_score,
)
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import find_spec
from tests.cases import each_case

FILES = IRCoTFiles(corpus="hp", demonstrations="prompts", questions="dev.json")
WHOLE = IRCoTExperiment(name="paper", datasets={"hotpotqa": FILES, "musique": FILES}, models=("small",))
LINE = Line(goal="qa", dataset="hotpotqa", demonstrations="hotpotqa", model="small", system="ircot", reader="direct")


def scored(recall: float, f1: float = 0.0, title_recall: float = 0.0, tuning_f1: float = 0.0) -> QuestionScores:
    known = {"paragraph_recall": recall, "answer_f1": f1, "title_recall": title_recall, "tuning_f1": tuning_f1}
    return dict.fromkeys(METRICS) | known | {"paragraphs_collected": 0}


def protocol(experiment: IRCoTExperiment) -> IRCoTProtocol:
    return IRCoTProtocol(experiment, SYSTEMS)


def of(experiment: IRCoTExperiment, **wanted: object) -> list[Line]:
    return [
        line
        for line in protocol(experiment).lines()
        if all(getattr(line, key) == value for key, value in wanted.items())
    ]


def test_the_papers_protocol_has_the_papers_grids() -> None:
    (retrieval,) = of(WHOLE, goal="retrieval", system="ircot", dataset="hotpotqa")
    cells = protocol(WHOLE).cells_to_search(retrieval)
    assert [(cell.retrieval_count, cell.distractors) for cell in cells] == [
        (k, m) for k in (2, 4, 6, 8) for m in (1, 2, 3)
    ]
    assert {(cell.stage, cell.demonstration_set) for cell in cells} == {("search", 1)}
    (one_step,) = of(WHOLE, goal="retrieval", system="one-step", dataset="hotpotqa")
    assert [cell.retrieval_count for cell in protocol(WHOLE).cells_to_search(one_step)] == [5, 7, 9, 11, 13, 15]
    assert {cell.distractors for cell in protocol(WHOLE).cells_to_search(one_step)} == {None}
    (answered,) = of(WHOLE, goal="qa", system="one-step", dataset="hotpotqa")
    assert len(protocol(WHOLE).cells_to_search(answered)) == 18


def test_every_demonstration_set_is_tried_with_what_was_chosen() -> None:
    chosen = protocol(WHOLE).cells_to_search(LINE)[4]
    tried = protocol(WHOLE).cells_to_test(LINE, chosen)
    assert [cell.demonstration_set for cell in tried] == [1, 2, 3]
    assert {(c.stage, c.retrieval_count, c.distractors) for c in tried} == {("test", 4, 2)}


def test_where_no_model_is_asked_one_test_run_says_all() -> None:
    line = replace(LINE, goal="retrieval", system="one-step", reader="none")
    assert len(protocol(WHOLE).cells_to_test(line, protocol(WHOLE).cells_to_search(line)[0])) == 1


@each_case(
    ("demonstrations", "format_", "runs"),
    [
        ("prompts", None, 3),
        ("prompts", "ircot", 3),
        ("prompts", "hotpotqa", 1),
        (DemonstrationFiles(cot="cot.txt", titles="titles.txt"), None, 3),
        (DemonstrationFiles(cot="cot.txt"), None, 1),
    ],
)
def test_one_step_retrieval_that_has_pages_named_is_tried_with_every_demonstration_set(
    demonstrations: DemonstrationFiles | str, format_: str | None, runs: int
) -> None:
    files = IRCoTFiles(corpus="iirc", demonstrations=demonstrations, format=format_)
    experiment = replace(WHOLE, datasets={"iirc": files, "musique": WHOLE.datasets["musique"]})
    line = replace(LINE, goal="retrieval", dataset="iirc", demonstrations="iirc", system="one-step", reader="none")
    assert len(protocol(experiment).cells_to_test(line, None)) == runs
    assert len(protocol(experiment).cells_to_test(replace(line, dataset="musique"), None)) == 1
    assert len(protocol(experiment).cells_to_test(replace(line, demonstrations="musique"), None)) == 1


def test_without_retrieval_there_is_nothing_to_choose() -> None:
    (line,) = of(WHOLE, system="no-retrieval", dataset="musique")
    assert line.goal == "qa"
    assert protocol(WHOLE).cells_to_search(line) == ()
    assert {(c.retrieval_count, c.distractors) for c in protocol(WHOLE).cells_to_test(line, None)} == {(None, None)}


def test_a_grid_of_one_needs_no_search() -> None:
    single = replace(WHOLE, grid=Grid(ircot_counts=(6,), distractors=(2,)))
    assert protocol(single).cells_to_search(LINE) == ()
    assert {(c.retrieval_count, c.distractors) for c in protocol(single).cells_to_test(LINE, None)} == {(6, 2)}


def test_only_ircot_answers_without_a_reader() -> None:
    both = replace(WHOLE, readers=("direct", "none"))
    assert {line.reader for line in of(both, goal="qa", system="ircot")} == {"direct", "none"}
    assert {line.reader for line in of(both, goal="qa", system="one-step")} == {"direct"}
    assert {line.reader for line in of(both, goal="qa", system="no-retrieval")} == {"direct"}


def test_a_system_of_ones_own_is_tried_as_its_spec_says() -> None:
    own = replace(find_spec(SYSTEMS, "ircot"), name="own", counts="one-step", states_answer=False)
    tried = IRCoTProtocol(replace(WHOLE, systems=("own",), readers=("direct", "none")), (*SYSTEMS, own))
    assert [(line.goal, line.reader) for line in tried.lines()] == 2 * [("retrieval", "none"), ("qa", "direct")]
    counts = {cell.retrieval_count for cell in tried.cells_to_search(replace(LINE, system="own"))}
    assert counts == set(WHOLE.grid.one_step_counts)


def test_a_system_that_is_none_or_has_no_reader_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="there is no system 'irchain'"):
        protocol(replace(WHOLE, systems=("irchain",)))
    with pytest.raises(UnknownNameError, match="there is no system 'irchain'"):
        protocol(replace(WHOLE, settings={"irchain": {}}))
    with pytest.raises(InputError, match="few-shot has no reader"):
        protocol(replace(WHOLE, systems=("few-shot",)))


def test_each_model_answers_as_the_readers_of_its_own_and_else_as_the_experiments() -> None:
    own = replace(WHOLE, models=("small", ModelUse(name="large", readers=("cot", "none"))))
    read = {(line.model, line.reader) for line in of(own, goal="qa", system="ircot")}
    assert read == {("small", "direct"), ("large", "cot"), ("large", "none")}
    assert {line.model for line in of(own, goal="retrieval", system="ircot")} == {"small", "large"}


def test_out_of_distribution_is_every_pair() -> None:
    pairs = {(line.demonstrations, line.dataset) for line in protocol(replace(WHOLE, out_of_distribution=True)).lines()}
    assert pairs == {(x, y) for x in WHOLE.datasets for y in WHOLE.datasets}
    assert {(line.demonstrations, line.dataset) for line in protocol(WHOLE).lines()} == {(x, x) for x in WHOLE.datasets}


def test_runs_are_sorted_as_the_file_has_them() -> None:
    cells = [
        cell
        for line in protocol(WHOLE).lines()
        for searched in [protocol(WHOLE).cells_to_search(line)]
        for cell in (*searched, *protocol(WHOLE).cells_to_test(line, searched[-1] if searched else None))
    ]
    possible = [cell for stage in protocol(WHOLE).stages() for cell in stage.possible]
    assert [cell for cell in dict.fromkeys(possible) if cell in set(cells)] == cells


def test_names_of_runs_are_distinct_and_say_what_they_vary() -> None:
    experiment = replace(WHOLE, out_of_distribution=True, readers=("direct", "cot", "none"), models=("small", "large"))
    names = [
        cell.name
        for line in protocol(experiment).lines()
        for searched in [protocol(experiment).cells_to_search(line)]
        for cell in (*searched, *protocol(experiment).cells_to_test(line, searched[0] if searched else None))
    ]
    assert len(names) == len(set(names))
    assert Cell(line=LINE, stage="test", demonstration_set=2, retrieval_count=4, distractors=1).name == (
        "test/qa/hotpotqa/small/ircot/direct/set2/K4/M1"
    )


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=12, max_size=12))
def test_the_best_is_chosen_and_of_equals_the_first(recalls: list[list[float]]) -> None:
    line = replace(LINE, goal="retrieval", reader="none")
    searched = {
        cell: [scored(r) for r in each]
        for cell, each in zip(protocol(WHOLE).cells_to_search(line), recalls, strict=True)
    }
    means = [fmean(each) for each in recalls]
    assert choose(searched, "paper") == list(searched)[means.index(max(means))]


@each_case(
    ("goal", "rules", "expected"),
    [("retrieval", "paper", 0.5), ("qa", "paper", 0.25), ("retrieval", "released", 0.167), ("qa", "released", 0.667)],
)
def test_each_goal_and_rule_has_its_own_measure(goal: str, rules: str, expected: float) -> None:
    scores = [scored(1.0, 0.5, 1 / 3, 2 / 3), scored(0.0, 0.0, 0.0, 2 / 3)]
    assert search_score(goal, scores, rules) == expected  # type: ignore[arg-type]


def test_a_question_that_can_not_be_scored_counts_nothing() -> None:
    unscored = dict(scored(0.0)) | {"paragraph_recall": None}
    assert search_score("retrieval", [scored(1.0), unscored], "paper") == 0.5
