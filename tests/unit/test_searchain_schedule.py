"""What the file of an experiment by the protocol of Search-in-the-Chain names, read and checked."""

from pathlib import Path

import pytest

from cotrail.configuration.settings import settings
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.stores import build_index
from cotrail.errors import CotrailError, InputError
from cotrail.services.runs.conducting import Schedule
from cotrail.services.runs.experiments import read_experiment_file
from cotrail.services.runs.submission import PreparedRun
from tests.cases import each_case
from tests.integration.three_trees import ASKED, EXPERIMENT, write_three_trees

WITHOUT = ("/without-retrieval", "/without-verification", "/without-completion")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a corpus and scripted engines, and beside them the files of an experiment."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    write_three_trees(tmp_path)
    build_index(read_corpus([tmp_path / "corpus.jsonl"]), tmp_path / "corpora" / "wikipedia")
    return tmp_path


def opened(folder: Path, file: str = EXPERIMENT) -> Schedule:
    path = folder / "experiment.toml"
    path.write_text(file)
    return Schedule(read_experiment_file(path), folder)


def prepared(folder: Path, file: str = EXPERIMENT) -> dict[str, PreparedRun]:
    """All runs, by what their names have behind the system's."""
    schedule = opened(folder, file)
    return {trial.name.partition("searchain")[2]: schedule.prepare(trial) for trial in schedule.cells}


def test_every_run_can_be_submitted_with_one_thing_left_out(folder: Path) -> None:
    runs = prepared(folder)
    assert tuple(runs) == ("", *WITHOUT)
    for name, run in runs.items():
        told = run.submission.settings
        left_out = [not told[setting] for setting in ("retrieve", "verify", "complete")]
        assert left_out == [name == without for without in WITHOUT]
        assert [question.id for question in run.questions] == list(ASKED)
        assert (not run.submission.binding.corpora) == (name == "/without-retrieval")
    assert opened(folder).check() == []


def test_a_run_names_the_engines_that_its_settings_ask_for_and_no_others(folder: Path) -> None:
    pins = {name: set(run.submission.binding.pins) for name, run in prepared(folder).items()}
    assert pins == {"": {"extractor"}, WITHOUT[0]: set(), WITHOUT[1]: {"extractor"}, WITHOUT[2]: {"extractor"}}
    by_model = prepared(folder, EXPERIMENT.replace('reader = "extractor"', 'reader = "model"'))
    assert {name for run in by_model.values() for name in run.submission.binding.pins} == set()


def test_settings_of_a_dataset_stand_over_the_experiments(folder: Path) -> None:
    both = EXPERIMENT.replace("[settings.searchain]", "[settings.searchain]\nrounds = 3\ntheta = 2.0")
    runs = prepared(folder, f"{both}settings = {{ theta = 0.5 }}\n")
    assert {(run.submission.settings["rounds"], run.submission.settings["theta"]) for run in runs.values()} == {
        (3, 0.5)
    }


def test_eli5_is_asked_for_long_answers(folder: Path) -> None:
    (folder / "eli5.jsonl").write_text('{"id": "e", "input": "Why?", "output": [{"answer": "Because."}]}\n')
    more = '[datasets.eli5]\nquestions = "eli5.jsonl"\ncorpus = "wikipedia"\n'
    schedule = opened(folder, EXPERIMENT + more)
    submissions = [schedule.prepare(trial).submission for trial in schedule.cells]
    found = {submission.dataset: submission.settings["questions"] for submission in submissions}
    assert found == {"musique": "multi-hop", "eli5": "long-form"}


def test_questions_are_drawn_by_the_seed(folder: Path) -> None:
    def keys(seed: int) -> set[tuple[str, ...]]:
        drawn = EXPERIMENT.replace("models", f"seed = {seed}\nmodels") + "test_questions = 2\n"
        return {tuple(question.id for question in run.questions) for run in prepared(folder, drawn).values()}

    assert len(keys(0)) == 1
    assert keys(0) == keys(0)
    assert len({next(iter(keys(seed))) for seed in range(9)}) > 1


def test_the_plan_changes_with_whatever_decides_a_result(folder: Path) -> None:
    before = opened(folder).plan()
    assert opened(folder).plan() == before
    assert (before["corpora"].keys(), before["files"].keys()) == ({"wikipedia"}, {"musique.jsonl"})
    (folder / "reader.json").write_text("{}")
    assert opened(folder).plan()["pins"] != before["pins"]


@each_case(
    ("change", "said"),
    [
        (('corpus = "wikipedia"', 'corpus = "nowhere"'), "nowhere"),
        (('questions = "musique.jsonl"', 'questions = "missing.jsonl"'), "missing.jsonl can't be read"),
        (('extractor = "reader"', 'extractor = "nobody"'), "nobody"),
        (('extractor = "reader"', ""), "name its `extractor`"),
        (('reader = "extractor"', 'reeder = "extractor"'), "reeder"),
        (('name = "trees"', 'name = "trees"\ntables = [1]'), "tables"),
    ],
)
def test_what_can_not_be_used_is_said_before_anything_is_queued(
    folder: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(CotrailError, match=said):
        opened(folder, EXPERIMENT.replace(*change)).check()


def test_a_question_without_an_answer_is_refused(folder: Path) -> None:
    path = folder / "musique.jsonl"
    path.write_text(path.read_text().replace('"answer": "Eve", ', ""))
    with pytest.raises(InputError, match="has no answer to compare with"):
        opened(folder).check()
