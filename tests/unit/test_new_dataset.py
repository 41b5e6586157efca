"""A dataset that is one record and a line of the registry is recognised, read, submitted, scored, listed and built."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.core.questions import GoldParagraph
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions
from cotrail.data.datasets.registry import DATASETS
from cotrail.errors import DatasetError
from cotrail.services.runs.requests import make_request
from cotrail.services.runs.scores import scores_of
from cotrail.services.runs.submission import prepare
from tests.extensions.riddles import SPEC
from tests.unit.commands import Given
from tests.unit.made_runs import question, record

INK = GoldParagraph(title="Ink", text="Ink stains paper.")
RIDDLES = (
    {"number": 1, "riddle": "What is black and stains?", "solution": "ink", "texts": {"Ink": INK.text}, "age": "old"},
    {"number": 2, "riddle": "What has a nib?", "solution": "pen", "texts": {"Pen": "A pen has a nib."}},
)


@pytest.fixture
def riddles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(DATASETS, "riddles", SPEC)
    path = tmp_path / "riddles.jsonl"
    path.write_text("".join(f"{json.dumps(riddle)}\n" for riddle in RIDDLES))
    return path


def test_its_files_are_read_and_recognised_under_another_name(riddles: Path) -> None:
    first, second = load_questions("riddles", riddles)
    assert (first.id, first.answers, first.gold, first.kinds) == ("1", ("ink",), (INK,), {"age": "old"})
    assert second.kinds == {}
    with pytest.raises(DatasetError, match="seems to be from riddles; name the dataset 'riddles' instead of 'jsonl'"):
        load_questions("jsonl", riddles)


def test_its_questions_are_submitted_and_set_what_a_system_asks_of_their_sort(riddles: Path, given: Given) -> None:
    keys = given(dataset="riddles", questions=str(riddles), system="searchain", demonstrations=None)
    prepared = prepare(make_request(keys))
    assert [each.text for each in prepared.questions] == [riddle["riddle"] for riddle in RIDDLES]
    assert prepared.missing_gold == 1
    assert prepared.submission.settings["questions"] == "slot-filling"


@pytest.mark.usefixtures("riddles")
def test_its_answers_are_scored_by_its_rule() -> None:
    scores = scores_of(record(dataset="riddles"), question(answer="yes, they do"))
    assert (scores["answer_em"], scores["answer_f1"], scores["rouge_l"]) == (0, 0, 0.5)
    assert scores_of(record(dataset="riddles"), question(answer="Yes."))["answer_f1"] == 1


@pytest.mark.usefixtures("riddles")
def test_it_is_listed() -> None:
    shown = CliRunner().invoke(app, ["datasets", "riddles", "--json"])
    listed = json.loads(shown.stdout)
    assert (listed["name"], listed["formats"], listed["corpus"]) == ("riddles", ["riddles"], "riddles.jsonl")
    assert "what is meant" in CliRunner().invoke(app, ["datasets"]).stdout


def test_its_questions_are_drawn_and_its_corpus_is_built(riddles: Path, tmp_path: Path) -> None:
    drawn, corpus = tmp_path / "drawn", tmp_path / "corpus.jsonl"
    sample = ["data", "sample", "riddles", str(riddles), "--development", "1", "--test", "1", "--output", str(drawn)]
    assert CliRunner().invoke(app, sample).exit_code == 0
    lines = [(drawn / name).read_text() for name in ("development.jsonl", "test.jsonl")]
    assert sorted(lines) == riddles.read_text().splitlines(keepends=True)
    assert CliRunner().invoke(app, ["data", "build", "riddles", str(riddles), "--output", str(corpus)]).exit_code == 0
    assert list(read_corpus([corpus])) == list(read_corpus([riddles]))
    assert [each.title for each in read_corpus([corpus])] == ["Ink", "Pen"]


@pytest.mark.usefixtures("riddles")
def test_records_that_lack_other_keys_are_known_by_the_key_of_their_paragraphs(tmp_path: Path) -> None:
    partial = tmp_path / "partial.jsonl"
    partial.write_text(json.dumps({"texts": RIDDLES[0]["texts"]}) + "\n")
    assert [each.title for each in read_corpus([partial])] == ["Ink"]
