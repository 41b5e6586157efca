import json
from pathlib import Path
from typing import Any

import pytest

from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions, sample_file, suffix
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import CorpusError, DatasetError


def example(text: str, answer: str = "Yes", **changes: Any) -> dict[str, Any]:
    scores = {"Yes": int(answer == "Yes"), "No": int(answer == "No")}
    return {"input": text, "target_scores": scores, "target": f"{answer}. Ink is a dye."} | changes


def written(folder: Path, *examples: object) -> Path:
    path = folder / "task.json"
    task = {"name": "strategyqa", "description": "Yes or no?", "keywords": ["qa"], "examples": examples}
    path.write_text(json.dumps(task, indent=4))
    return path


def test_an_answer_is_the_one_that_scores(tmp_path: Path) -> None:
    questions = load_questions("strategyqa", written(tmp_path, example("Does ink stain?"), example("Is it red?", "No")))
    assert [(each.text, each.answers) for each in questions] == [("Does ink stain?", ("yes",)), ("Is it red?", ("no",))]


def test_an_id_depends_on_the_question_alone(tmp_path: Path) -> None:
    texts = ("Does ink stain?", "Is it red?")
    forth, back = (
        {each.text: each.id for each in load_questions("strategyqa", written(tmp_path, *map(example, order)))}
        for order in (texts, texts[::-1])
    )
    assert forth == back
    assert len(set(forth.values())) == 2


def test_equal_examples_count_once_and_contradicting_ones_are_an_error(tmp_path: Path) -> None:
    twice = written(tmp_path, example("Is it red?"), example("Is it red?", target="Yes. Once more."))
    assert len(load_questions("strategyqa", twice)) == 1
    with pytest.raises(DatasetError, match=r"task\.json, example 2: this question is there before"):
        load_questions("strategyqa", written(tmp_path, example("Is it red?"), example("Is it red?", "No")))


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"input": "Is it?"}, r"example 2: .*`target_scores`"),
        (example("Is it?", target_scores={"True": 1, "False": 0}), r"example 2: .*`Yes`"),
        (example(" "), "example 2: the question is empty"),
        (example("Is \0 it?"), r"task\.json: .*NUL"),
    ],
)
def test_a_malformed_example_is_an_error_that_names_it(broken: object, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions("strategyqa", written(tmp_path, example("Does ink stain?"), broken))


def test_a_file_without_examples_or_cut_off_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(DatasetError, match="holds no questions"):
        load_questions("strategyqa", path)
    path.write_bytes(written(tmp_path, example("Does ink stain?")).read_bytes()[:-9])
    with pytest.raises(DatasetError, match=r"task\.json: .*valid JSON"):
        load_questions("strategyqa", path)


@pytest.mark.parametrize("dataset", ["strategyqa-facts", "hotpotqa", "jsonl"])
def test_the_task_is_of_strategyqa_alone_and_has_no_facts(dataset: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=f"task of BIG-bench; name the dataset 'strategyqa' instead of '{dataset}'"):
        load_questions(dataset, written(tmp_path, example("Does ink stain?")))


def test_the_task_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="task of BIG-bench, which are no paragraphs"):
        list(read_corpus([written(tmp_path, example("Does ink stain?"))]))


def test_a_drawn_file_is_a_task_again_and_loads_as_the_questions_that_are_drawn(tmp_path: Path) -> None:
    path = written(tmp_path, *(example(f"Is {number} red?") for number in range(9)))
    assert suffix("strategyqa", path) == ".json"
    drawn = tmp_path / "development.json"
    drawn.write_bytes(sample_file("strategyqa", path, 4, 0, seed=1)[0])
    expected, _ = sample_questions(load_questions("strategyqa", path), 4, 0, seed=1)
    assert load_questions("strategyqa", drawn) == expected
