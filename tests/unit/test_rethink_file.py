"""`cotrail rethink`: what recorded chains come to, and the files that are refused."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.errors import DatasetError
from cotrail.faithfulness.recorded import is_right, read_recorded
from cotrail.faithfulness.rules import weigh
from cotrail.faithfulness.weighing import NO_EVIDENCE, Scores, Thresholds
from tests.cases import each_case

ROOT = Path(__file__).parents[2]

Line = dict[str, Any]
Write = Callable[..., Path]
Rethink = Callable[..., list[Line]]


def sentence(text: str, m: float, e: float, c: float) -> Line:
    return {"text": text, "similarity": m, "entailment": e, "contradiction": c}


DIED_2000 = sentence("Aristotle died in 2000.", 0.70, 0.02, 0.97)
DIED_322BC = sentence("Aristotle died in 322BC.", 0.75, 0.90, 0.02)
LAPTOP_1980 = sentence("The first laptop was invented in 1980.", 0.80, 0.95, 0.01)
LAPTOP_2000 = sentence("The first laptop was invented in 2000.", 0.78, 0.01, 0.99)
USED, NOT_USED = "So the answer is yes.", "Thus, Aristotle did not use a laptop. So the answer is no."


def chain(conclusion: str, *sentences: Line) -> Line:
    return {"text": " ".join([*(each["text"] for each in sentences), conclusion]), "sentences": sentences}


R1 = chain(USED, DIED_2000, LAPTOP_1980)
R2 = chain(NOT_USED, DIED_322BC, LAPTOP_2000)
R3 = chain(NOT_USED, DIED_322BC, LAPTOP_1980)
ARISTOTLE = {"id": "a", "question": "Did Aristotle use a laptop?", "answers": ["no"], "chains": [R1, R2, R3]}


def predicting(*pairs: tuple[str, float]) -> list[Line]:
    """Chains of a sentence each that adds so much by function 2."""
    return [{"prediction": stated, "sentences": [sentence("", m, 0, 0)]} for stated, m in pairs]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*lines: Line | str) -> Path:
        path = tmp_path / "chains.jsonl"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return path

    return write


@pytest.fixture
def rethink(write: Write) -> Rethink:
    """What `--json` prints about such lines."""

    def rethink(*lines: Line, options: str = "") -> list[Line]:
        shown = CliRunner().invoke(app, ["rethink", str(write(*lines)), "--json", *options.split()])
        assert shown.exit_code == 0, shown.output
        return [json.loads(line) for line in shown.stdout.splitlines()]

    return rethink


@each_case(
    ("options", "weights"),
    [
        ("", {"no": 2.04, "yes": 0.52}),
        ("--no-voting", {"no": 1.52, "yes": 0.52}),
        ("--function 2", {"no": 5.84, "yes": 2.47}),
        ("--function 2 --no-voting", {"no": 3.40, "yes": 2.47}),
        ("--function 3", {"no": 1.76, "yes": 0.95}),
        ("--function 3 --no-voting", {"no": 1.85, "yes": 0.95}),
        ("--function 3 --contradiction-threshold 0.97", {"no": 1.76, "yes": -0.02}),
        ("--function 3 --entailment-threshold 0.92", {"no": -0.04, "yes": 0.95}),
        # 0.02 - 0.97 + 0.80 - 0.01; 0.90 - 0.02 + 0.01 - 0.99 + 0.90 - 0.02 + 0.80 - 0.01
        ("--similarity-threshold 0.8", {"no": 1.57, "yes": -0.16}),
    ],
)
def test_the_running_example_is_reckoned_as_by_hand(options: str, weights: dict[str, float], rethink: Rethink) -> None:
    [line] = rethink(ARISTOTLE, options=options)
    weighed = {each["prediction"]: each["weight"] for each in line["weighing"]["predictions"]}
    assert weighed == pytest.approx(weights, abs=1e-12)
    assert line["prediction"] == max(weights, key=weights.__getitem__)
    assert line["right"] == (line["prediction"] == "no")


def test_the_whole_weighing_is_printed_for_programs(rethink: Rethink) -> None:
    [line] = rethink(ARISTOTLE)
    assert {key: value for key, value in line.items() if key != "weighing"} == {
        "id": "a",
        "question": "Did Aristotle use a laptop?",
        "task": "commonsense",
        "answers": ["no"],
        "prediction": "no",
        "right": True,
    }
    weighing = line["weighing"]
    assert (weighing["function"], weighing["chosen"]) == (1, 2)
    assert [each["prediction"] for each in weighing["chains"]] == ["yes", "no", "no"]
    assert [each["faithfulness"] for each in weighing["chains"]] == pytest.approx([0.52, 0.52, 1.52], abs=1e-12)
    first = weighing["chains"][0]["sentences"][0]
    assert first == DIED_2000 | {"evidence": None, "score": pytest.approx(-0.27, abs=1e-12)}


def test_only_the_first_chains_count_where_one_says_so(rethink: Rethink) -> None:
    for count, prediction in ((1, "yes"), (2, "yes"), (3, "no"), (10, "no")):
        [line] = rethink(ARISTOTLE, options=f"--chains {count} --function 2 --no-voting")
        assert line["prediction"] == prediction
        assert len(line["weighing"]["chains"]) == min(count, 3)


def test_each_question_has_its_own_task_and_function(rethink: Rethink) -> None:
    lines = (
        {"id": "1", "chains": predicting(("true", 0.5))},
        {"id": "2", "task": "temporal", "chains": [{"text": "So the answer is Tim Pawlenty."}]},
        {"id": "3", "task": "commonsense", "chains": predicting(("no", 0.5))},
    )
    found = rethink(*lines, options="--task tabular")
    assert [(each["task"], each["prediction"], each["weighing"]["function"]) for each in found] == [
        ("tabular", "true", 1),
        ("temporal", "Tim Pawlenty", 2),
        ("commonsense", "no", 1),
    ]


def test_temporal_predictions_are_one_as_squad_has_it_and_right_by_exact_match(rethink: Rethink) -> None:
    chains = predicting(("Madison", 0.9), ("The Truman.", 0.4), ("", 1.0), ("truman", 0.6))
    [line] = rethink({"id": "1", "answers": ["Harry Truman", "TRUMAN"], "chains": chains}, options="--task temporal")
    assert (line["prediction"], line["right"]) == ("The Truman.", True)
    [best, other] = line["weighing"]["predictions"]
    assert (best["weight"], best["chains"], line["weighing"]["chosen"]) == (pytest.approx(1.0), [1, 3], 3)
    assert (other["prediction"], other["weight"]) == ("Madison", 0.9)


def test_chains_that_lack_something_are_weighed_too(rethink: Rethink) -> None:
    states_nothing = chain("Who knows.", LAPTOP_1980)
    ten = {"text": " ".join(f"So the answer is {each}." for each in ["no", "yes"] * 5)}
    lines = (
        {"id": "no chains", "answers": ["no"], "chains": []},
        {"id": "no answer", "answers": ["no"], "chains": [states_nothing, {"text": ""}, {"prediction": ""}]},
        {"id": "no sentence", "chains": [{"text": "So the answer is no."}, states_nothing]},
        {"id": "ten answers", "chains": [ten]},
        {"id": "no evidence", "chains": [{"prediction": "no", "sentences": [{"text": "Ink stains."}]}]},
    )
    found = rethink(*lines, options="--function 2")
    assert [(each["prediction"], each["right"], each["weighing"]["chosen"]) for each in found] == [
        ("", False, None),
        ("", False, None),
        ("no", None, 0),
        ("yes", None, 0),
        ("no", None, 0),
    ]
    weights = [each["weighing"]["predictions"][0]["weight"] for each in found[2:]]
    assert weights == [0.0, 0.0, NO_EVIDENCE.similarity]


def test_a_reader_sees_every_question_and_the_accuracy(write: Write) -> None:
    path = write(
        ARISTOTLE,
        {"id": "unknown", "chains": predicting(("yes", 0.5))},
        {"id": "wrong", "answers": ["yes"], "chains": predicting(("no", 0.5), ("no", 0.5), ("yes", 0.5))},
        {"id": "none", "answers": ["yes"], "chains": []},
    )
    shown = CliRunner().invoke(app, ["rethink", str(path), "--chains", "3"])
    assert shown.exit_code == 0
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[1] == "Did Aristotle use a laptop? no 2.040 2 of 3 no right".split()  # noqa: SIM905
    assert rows[2] == "unknown yes 0.500 1 of 1 -".split()  # noqa: SIM905
    assert rows[3] == "wrong no 1.000 2 of 3 yes wrong".split()  # noqa: SIM905
    assert rows[4] == "none - - 0 of 0 yes wrong".split()  # noqa: SIM905
    said = " ".join(word for row in rows[5:] for word in row)
    assert said == (
        "4 questions; accuracy 33.3 %: 1 of 3 questions with a gold answer; "
        "1 without a prediction, as no chain states one; 2 with fewer than 3 chains"
    )


def test_scores_may_be_out_of_range_by_a_rounding_error(write: Write) -> None:
    facts = [sentence("", 1.0000001, 0, 0), sentence("", 0.5, -0.0000001, 0.4), sentence("", 0.5, 0.6000004, 0.4000004)]
    [question] = read_recorded(write({"id": "1", "chains": [{"prediction": "no", "sentences": facts}]}), "commonsense")
    assert [fact.scores.similarity for fact in question.chains[0].facts] == [1.0000001, 0.5, 0.5]


def test_whole_numbers_and_blank_lines_are_read(write: Write) -> None:
    path = write("", {"id": "1", "chains": [{"prediction": "no", "sentences": [sentence("", 1, 0, 1)]}]}, " ")
    [question] = read_recorded(path, "commonsense")
    weighing = weigh(question.chains, question.task, function=1, thresholds=Thresholds(), voting=True)
    assert weighing.predictions[0].weight == 0.0
    assert is_right("no", question) is None


def test_scores_may_bear_the_papers_letters(write: Write) -> None:
    named = {"prediction": "no", "sentences": [sentence("", 0.6, 0.7, 0.8)]}
    lettered = {"prediction": "no", "sentences": [{"M": 0.6, "E": 0.7, "C": 0.8}]}
    [question] = read_recorded(write({"id": "1", "chains": [named, lettered]}), "commonsense")
    one, other = question.chains
    assert one.facts == other.facts
    assert one.facts[0].scores == Scores(similarity=0.6, entailment=0.7, contradiction=0.8)


def test_a_prediction_that_is_given_counts_as_it_is(write: Write) -> None:
    line = {"id": "1", "answers": ["No"], "chains": [{"prediction": each} for each in ("NO", " no", "Paris", "", " ")]}
    [question] = read_recorded(write(line), "commonsense")
    assert [chain.prediction for chain in question.chains] == ["no", "no", "Paris", "", ""]
    assert is_right("no", question)
    assert not is_right("Paris", question)


def with_sentence(**changes: object) -> Line:
    known = {key: value for key, value in (LAPTOP_1980 | changes).items() if value != "left out"}
    return {"id": "1", "chains": [R1, {"prediction": "no", "sentences": [DIED_322BC, known]}]}


@each_case(
    ("line", "said"),
    [
        ("not JSON", "isn't valid JSON"),
        ("[]", "this must be an object"),
        ({"chains": []}, "the key `id` is missing"),
        ({"id": "1"}, "the key `chains` is missing"),
        ({"id": " ", "chains": []}, "the id is empty"),
        ({"id": 1, "chains": []}, "`id` must be text in quotation marks"),
        ({"id": "1", "chains": [], "gold": []}, "no key `gold`"),
        ({"id": "1", "chains": [], "task": "spatial"}, "'spatial'"),
        ({"id": "1", "chains": [{}]}, "line 2, $.chains[0]: the chain has neither text nor prediction"),
        ({"id": "1", "chains": [], "answers": [True]}, "`answers[0]` must be text in quotation marks"),
        ({"id": "1", "chains": [{"text": "a\0b"}]}, "NUL"),
        (with_sentence(similarity=1.01), "`chains[1].sentences[1].similarity`"),
        (with_sentence(similarity=-1.01), "must be a number from -1.0"),
        (with_sentence(entailment=1.01, contradiction=0), "`chains[1].sentences[1].entailment`"),
        (with_sentence(entailment=-0.01), "must be a number from -"),
        (with_sentence(contradiction=2), "`chains[1].sentences[1].contradiction`"),
        (with_sentence(contradiction="0.5"), 'not "0.5"'),
        (with_sentence(contradiction=True), "not true"),
        (with_sentence(similarity=float("nan")), "isn't valid JSON"),
        (with_sentence(entailment=float("inf")), "isn't valid JSON"),
        ('{"id": "1", "chains": [{"text": "", "sentences": [{"similarity": 1e999}]}]}', "out of range"),
        (with_sentence(M=0.5, E=0.5, C=0.5), "line 2, $.chains[1].sentences[1]: give similarity"),
        (with_sentence(similarity="left out"), "line 2, $.chains[1].sentences[1]: give similarity, entailment and"),
        (with_sentence(contradiction=None), "or none of them where no evidence was found"),
    ],
)
def test_a_line_that_can_not_be_used_is_named(line: Line | str, said: str, write: Write) -> None:
    path = write(ARISTOTLE, line)
    with pytest.raises(DatasetError) as refused:
        read_recorded(path, "commonsense")
    assert str(refused.value).startswith(f"{path}, line 2")
    assert said in str(refused.value)


def test_two_questions_can_not_have_one_id(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 3: a question before has the id 'a' too"):
        read_recorded(write(ARISTOTLE, ARISTOTLE | {"id": "b"}, ARISTOTLE), "commonsense")


def test_a_file_without_questions_is_refused(write: Write) -> None:
    with pytest.raises(DatasetError, match="holds no questions"):
        read_recorded(write("", ""), "commonsense")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "line 2: the id is empty"),
        (["--function", "4"], "see `cotrail rethink --help`"),
        (["--task", "spatial"], "see `cotrail rethink --help`"),
        (["--chains", "0"], "see `cotrail rethink --help`"),
        (["--similarity-threshold", "nan"], "see `cotrail rethink --help`"),
        (["--entailment-threshold", "1.5"], "see `cotrail rethink --help`"),
        (["--contradiction-threshold", "-1"], "see `cotrail rethink --help`"),
    ],
)
def test_a_refusal_is_one_line_and_nothing_is_printed_before_it(arguments: list[str], said: str, write: Write) -> None:
    path = write(ARISTOTLE, {"id": "", "chains": []})
    ended = subprocess.run(
        [sys.executable, "-m", "cotrail.cli.main", "rethink", str(path), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    line, *_ = ended.stderr.splitlines()
    assert said in line


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"missing\.jsonl can't be read"):
        read_recorded(tmp_path / "missing.jsonl", "commonsense")


def test_the_documented_example_is_read(write: Write) -> None:
    text = (ROOT / "docs" / "recorded-chains.md").read_text()
    example = text.split("```json\n")[1].split("```")[0]
    [question] = read_recorded(write(example.replace("\n", " ")), "temporal")
    assert [each.prediction for each in question.chains] == ["yes", "no"]
    weighing = weigh(question.chains, question.task, function=1, thresholds=Thresholds(), voting=True)
    assert weighing.predictions[0].prediction == "no"
