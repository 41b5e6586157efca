"""Calibration of a judge against people's labels, by hand."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import InputError
from cotrail.evaluation.judging.calibration import (
    OTHER,
    RIGHT,
    Confused,
    Label,
    calibration,
    calibration_error,
    corrected_share,
    read_labels,
)
from tests.cases import each_case

SIMPLEQA = {"correct": 1.0, "incorrect": 0.0, "not attempted": 0.0}
QUESTIONS = {"q1", "q2", "q3"}


def numbered(*values: str) -> dict[str, str]:
    return {f"q{place}": value for place, value in enumerate(values)}


def test_a_judge_beside_verdicts_of_people_equals_a_hand_computation() -> None:
    labels: dict[str, Label] = {
        **numbered("correct", "correct", "correct", "incorrect", "incorrect", "not attempted", "correct")
    }
    verdicts = numbered("correct", "correct", "incorrect", "correct", "incorrect", "incorrect") | {"q9": "correct"}
    found = calibration(verdicts, labels, SIMPLEQA, {})
    # Compared q0 to q5: right by both q0, q1; called right, isn't q3; right, isn't called so q2; neither q4, q5.
    assert (found.labelled, found.compared, found.unlabelled) == (7, 6, 1)
    assert (found.accuracy.hits, found.accuracy.of) == (4, 6)
    assert (found.precision.hits, found.precision.of) == (2, 3)
    assert (found.recall.hits, found.recall.of) == (2, 3)
    assert found.f1 == pytest.approx(2 / 3)
    assert found.agreement.value == pytest.approx(3 / 6)
    # Kappa over verdicts: observed 3/6; labels 3, 2, 1 and verdicts 3, 3, 0: by chance (9 + 6) / 36.
    assert found.kappa.value == pytest.approx((1 / 2 - 15 / 36) / (1 - 15 / 36))
    assert Confused(label="not attempted", verdict="incorrect", questions=1) in found.confusion
    assert sum(each.questions for each in found.confusion) == 6
    assert (found.stated, found.confidence) == (0, None)
    assert found.precision.interval is not None
    # Clopper and Pearson's interval of 2 of 3.
    assert (found.precision.interval.low, found.precision.interval.high) == pytest.approx((0.09430, 0.99160), abs=1e-4)


def test_labels_that_only_say_correct_are_compared_with_the_right_verdict() -> None:
    labels: dict[str, Label] = {"q0": True, "q1": False, "q2": False}
    found = calibration(numbered("correct", "not attempted", "correct"), labels, SIMPLEQA, {})
    assert {(each.label, each.verdict): each.questions for each in found.confusion} == {
        (RIGHT, RIGHT): 1,
        (OTHER, OTHER): 1,
        (OTHER, RIGHT): 1,
    }
    assert found.agreement == found.accuracy
    assert found.recall.value == 1


def test_labels_correct_the_share_of_right_verdicts_as_computed_by_hand() -> None:
    """Eight verdicts alone, 6 right; four with labels, of which one calls right what isn't."""
    labels: dict[str, Label] = {"q0": True, "q1": False, "q2": False, "q3": True}
    known = numbered("correct", "correct", "incorrect", "correct")
    alone = {f"p{n}": "correct" if n < 6 else "incorrect" for n in range(8)}
    found = calibration(known | alone, labels, SIMPLEQA, {}).corrected
    assert found is not None
    assert (found.judged, found.correction, found.value) == (0.75, -0.25, 0.5)
    assert (found.compared, found.unlabelled) == (4, 8)
    # Variances: of the verdicts 3/4 * 1/4, of the errors (0, -1, 0, 0) the same; over 8 and over 4.
    width = 1.959964 * (0.1875 / 8 + 0.1875 / 4) ** 0.5
    assert (found.low, found.high) == pytest.approx((max(0.5 - width, 0), min(0.5 + width, 1)))


def test_too_few_labels_or_verdicts_correct_nothing() -> None:
    pair = [(True, True), (False, True)]
    assert corrected_share(pair[:1], [True, True]) is None
    assert corrected_share(pair, [True]) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2), st.lists(st.booleans(), min_size=2))
def test_a_corrected_share_is_one_and_a_judge_that_is_right_everywhere_needs_no_correction(
    compared: list[tuple[bool, bool]], alone: list[bool]
) -> None:
    found = corrected_share(compared, alone)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    perfect = corrected_share([(label, label) for label, _ in compared], alone)
    assert perfect is not None
    assert perfect.value == pytest.approx(sum(alone) / len(alone))
    assert perfect.correction == 0


def test_the_interval_covers_the_true_share_nineteen_times_in_twenty() -> None:
    """A judge that calls a fifth of wrong answers right and a tenth of right ones wrong, 500 times."""
    chance, covered = Random(1), 0
    for _ in range(500):
        right = [chance.random() < 0.6 for _ in range(400)]
        calls = [chance.random() < (0.9 if each else 0.2) for each in right]
        found = corrected_share([*zip(right[:80], calls[:80], strict=True)], calls[80:])
        assert found is not None
        covered += found.low <= 0.6 <= found.high
    assert 0.92 <= covered / 500 <= 0.98


def test_without_anything_to_compare_nothing_is_stated() -> None:
    found = calibration({"q1": "correct"}, {"q2": True}, SIMPLEQA, {"q1": 0.5})
    assert (found.compared, found.accuracy.value, found.f1, found.kappa.value, found.confidence) == (0, *[None] * 4)
    assert (found.labelled, found.unlabelled) == (1, 1)


def test_confidence_is_compared_with_the_share_of_verdicts_that_hold() -> None:
    labels: dict[str, Label] = {"q0": "correct", "q1": "incorrect"}
    found = calibration(numbered("correct", "correct"), labels, SIMPLEQA, {"q0": 0.9, "q1": 0.8})
    assert found.confidence is not None
    assert found.confidence.error == pytest.approx(0.85 - 0.5)
    assert found.stated == 2


def test_the_calibration_error_equals_a_hand_computation() -> None:
    # Bins of two, the third statement of the last bin with it: (0.1, 0.2) right 0.5; (0.6, 0.8, 1.0) right 2/3.
    found = calibration_error([(1.0, True), (0.1, False), (0.8, True), (0.2, True), (0.6, False)], size=2)
    assert found is not None
    assert [each.statements for each in found.bins] == [2, 3]
    assert [each.confidence for each in found.bins] == pytest.approx([0.15, 0.8])
    assert [each.right for each in found.bins] == pytest.approx([1 / 2, 2 / 3])
    assert found.error == pytest.approx(((2 * 0.35**2 + 3 * (0.8 - 2 / 3) ** 2) / 5) ** 0.5)


@given(
    statements=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30),
    size=st.integers(min_value=1, max_value=10),
)
def test_each_statement_is_in_one_bin(statements: list[tuple[float, bool]], size: int) -> None:
    found = calibration_error(statements, size)
    assert found is not None
    assert sum(each.statements for each in found.bins) == len(statements)
    assert all(size <= each.statements < 2 * size for each in found.bins) or len(statements) < size
    assert 0 <= found.error <= 1


@given(pairs=st.lists(st.tuples(st.sampled_from([*SIMPLEQA]), st.sampled_from([*SIMPLEQA])), min_size=1, max_size=40))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs: list[tuple[str, str]]) -> None:
    labels: dict[str, Label] = {f"q{place}": label for place, (label, _) in enumerate(pairs)}
    found = calibration(numbered(*(verdict for _, verdict in pairs)), labels, SIMPLEQA, {})
    precision, recall = found.precision.value, found.recall.value
    if precision and recall:
        assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert found.compared == sum(each.questions for each in found.confusion)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "labels"
    path.write_text(text)
    return path


@each_case(
    ("text", "labels"),
    [
        ('{"id": "q1", "verdict": "correct"}\n\n{"id": "q2", "verdict": "not attempted"}\n', None),
        ("id\tverdict\nq1\tcorrect\nq2\tnot attempted\n", None),
        ('id,note,verdict\nq1,"a, b",correct\nq2,,not attempted\n', None),
        ('{"id": "q1", "correct": true}\n{"id": "q2", "correct": false}\n', {"q1": True, "q2": False}),
        ("id,correct\nq1,True\nq2,false\n", {"q1": True, "q2": False}),
        ("id,verdict,correct\nq1,,true\nq2,,false\n", {"q1": True, "q2": False}),
    ],
)
def test_labels_are_lines_of_json_or_a_table(tmp_path: Path, text: str, labels: dict[str, Label] | None) -> None:
    assert read_labels(written(tmp_path, text), QUESTIONS, SIMPLEQA) == (
        labels or {"q1": "correct", "q2": "not attempted"}
    )


@each_case(
    ("text", "refusal"),
    [
        ("", "has no labels"),
        ("id,verdict\n", "has no labels"),
        ('{"id": "q1", "verdict": "correct"\n', "line 1: this isn't valid JSON"),
        ('{"id": "q1"}\n', "line 1: a label is either"),
        ('{"id": "q1", "verdict": "correct", "correct": true}\n', "line 1: a label is either"),
        ('{"id": "q1", "verdict": "corect"}\n', "line 1: `verdict` can't be 'corect' .did you mean correct.."),
        ('{"id": "q1", "correct": "yes"}\n', "line 1: `correct` must be true or false"),
        ('{"id": "q1", "grade": 1}\n', "line 1: there is no key `grade`"),
        ('{"id": "q7", "correct": true}\n', "line 1: the run has no question 'q7'"),
        (
            '{"id": "q1", "correct": true}\n{"id": "q1", "correct": true}\n',
            "line 2: question 'q1' is in .*line 1 already",
        ),
        ('{"id": "q1", "correct": true}\n{"id": "q2", "verdict": "correct"}\n', "both `verdict` and `correct`"),
        ("id,correct\nq1,maybe\n", "line 2: `correct` can't be 'maybe'"),
        ("id,correct\nq1\n", "line 2: 1 cells"),
        ("question,correct\nq1,true\n", "line 1: the header names no id"),
        ("id,grade\nq1,true\n", "line 1: the header names no verdict or correct"),
    ],
)
def test_labels_that_cant_be_used_are_refused_with_their_place(tmp_path: Path, text: str, refusal: str) -> None:
    with pytest.raises(InputError, match=refusal):
        read_labels(written(tmp_path, text), QUESTIONS, SIMPLEQA)


def test_labels_of_many_questions_are_read(tmp_path: Path) -> None:
    keys = [f"q{number}" for number in range(1000)]
    text = "".join(json.dumps({"id": key, "correct": True}) + "\n" for key in keys)
    assert len(read_labels(written(tmp_path, text), set(keys), SIMPLEQA)) == 1000
