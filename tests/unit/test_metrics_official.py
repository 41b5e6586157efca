"""The metrics beside what the official evaluation scripts said of made-up cases (tests/unit/metrics/record.py)."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_scores import answer_scores, tuning_f1
from cotrail.evaluation.metrics.supporting_paragraphs import answer_support_recall, support_scores
from tests.cases import each_case
from tests.unit.official_figures import official_figures

RECORDED = Path(__file__).parent / "metrics"

Row = dict[str, Any]


def recorded(name: str) -> list[Row]:
    return [json.loads(line) for line in gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def published(spans: list[str]) -> str:
    """An answer of several spans as a question holds it."""
    return spans[0] if len(spans) == 1 else json.dumps(spans)


def differing(rows: list[Row], name: str, ours: Any) -> list[tuple[Row, Any]]:
    """The cases of which our numbers aren't those of the script."""
    return [(row, said) for row in rows if (said := ours(row)) != row[name]]


def answer_numbers(dataset: str, prediction: str, answers: list[str]) -> list[float]:
    scores = answer_scores(scoring_of(dataset), prediction, answers)
    assert scores is not None
    return list(msgspec.structs.astuple(scores))


@each_case(("dataset", "forms", "numbers"), [("hotpotqa", 1, 4), ("2wikimultihopqa", None, 4), ("musique", None, 2)])
def test_answers_score_as_the_publishers_script_has_it(dataset: str, forms: int | None, numbers: int) -> None:
    rows = recorded("words")
    assert len(rows) >= 3000
    assert not differing(
        rows, dataset, lambda row: answer_numbers(dataset, row["prediction"], row["answers"][:forms])[:numbers]
    )


def test_answers_of_several_spans_score_as_the_released_code_has_it() -> None:
    rows = recorded("spans")
    assert len(rows) >= 3000
    assert not differing(
        rows, "iirc", lambda row: answer_numbers("iirc", row["prediction"], [published(row["answer"])])
    )


def test_the_f1_that_hyperparameters_are_chosen_by_is_the_released_codes() -> None:
    assert not differing(recorded("words"), "tuning", lambda row: tuning_f1(row["prediction"], row["answers"]))
    assert not differing(
        [row | {"tuning": row["iirc"][1]} for row in recorded("spans")],
        "tuning",
        lambda row: tuning_f1(row["prediction"], [published(row["answer"])]),
    )


def test_supporting_paragraphs_score_as_the_released_code_has_it() -> None:
    rows = recorded("support")
    assert len(rows) >= 3000
    for dataset in ("hotpotqa", "iirc"):
        assert not differing(rows, "support", lambda row, dataset=dataset: support_numbers(dataset, row))


def test_answer_support_recall_is_the_released_codes() -> None:
    assert not differing(
        recorded("support"),
        "answer_support",
        lambda row: answer_support_recall(paragraphs(row["collected"]), [published(row["answer"])]),
    )


def support_numbers(dataset: str, row: Row) -> list[float]:
    gold = [GoldParagraph(title=title, text=text) for title, text in row["gold"]]
    scores = support_scores(scoring_of(dataset), paragraphs(row["collected"]), gold)
    assert scores is not None
    return list(msgspec.structs.astuple(scores))


def paragraphs(contents: list[tuple[str, str]]) -> list[Paragraph]:
    return [Paragraph(id=str(place), title=title, text=text) for place, (title, text) in enumerate(contents)]


def test_the_figures_are_those_that_the_scripts_print() -> None:
    words, spans = recorded("words"), recorded("spans")
    printed = json.loads((RECORDED / "figures.json").read_text())
    predictions, answers = [row["prediction"] for row in words], [row["answers"] for row in words]
    assert official_figures("hotpotqa", predictions, [forms[:1] for forms in answers]) == printed["hotpotqa"]
    assert official_figures("2wikimultihopqa", predictions, answers) == printed["2wikimultihopqa"]
    assert official_figures("musique", predictions, answers) == printed["musique"]
    lists = [[published(row["answer"])] for row in spans]
    assert official_figures("iirc", [row["prediction"] for row in spans], lists) == printed["iirc"]


def test_a_missing_prediction_scores_nothing_in_the_figures() -> None:
    figures = official_figures("musique", ["ink", None, ""], [("ink",), ("the",), ("pen",)])
    assert figures == {"answer_f1": 0.333, "answer_em": 0.333}


@each_case(("predictions", "answers"), [([], []), (["ink"], []), (["ink"], [["ink"], ["pen"]]), (["ink"], [[]])])
def test_figures_of_what_cannot_be_compared_are_refused(predictions: list[str], answers: list[list[str]]) -> None:
    with pytest.raises(InputError, match="can't be compared"):
        official_figures("hotpotqa", predictions, answers)
