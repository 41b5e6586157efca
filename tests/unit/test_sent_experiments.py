"""Experiments that are sent to a server: their files are found, and what leads out of their folder is refused."""

from pathlib import Path

import pytest

from cotrail.errors import InputError
from cotrail.services.runs.experiments import check_stays_inside, read_to_send
from tests.cases import each_case

FILE = """
name = "sent"
readers = ["direct"]
[datasets.jsonl]
questions = "data/questions.jsonl"
corpus = "sample"
official = "../official.json"
demonstrations = { cot = "gold_with_{M}.txt", direct = "words" }
"""


def test_files_and_folders_that_a_file_names_are_sent_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    (folder / "data").mkdir(parents=True)
    (folder / "words").mkdir()
    for path in ("data/questions.jsonl", "gold_with_1.txt", "gold_with_2.txt", "../official.json"):
        (folder / path).write_text("x")
    (folder / "sent.toml").write_text(FILE)
    request = read_to_send(folder / "sent.toml", reuse=False)
    assert {name: Path(path).resolve() for name, path in request.files.items()} == {
        "data/questions.jsonl": folder / "data" / "questions.jsonl",
        "outside1/official.json": tmp_path / "official.json",
        "gold_with_1.txt": folder / "gold_with_1.txt",
        "gold_with_2.txt": folder / "gold_with_2.txt",
        "words": folder / "words",
    }
    dataset = request.experiment["datasets"]["jsonl"]
    assert (dataset["official"], dataset["questions"]) == ("outside1/official.json", "data/questions.jsonl")
    assert dataset["demonstrations"] == {"cot": "gold_with_{M}.txt", "direct": "words"}
    assert (dataset["corpus"], request.reuse) == ("sample", False)
    check_stays_inside(request.experiment)


@each_case("path", ["/etc/passwd", "../secret", "a/../../b", "~/x"])
def test_a_path_out_of_the_folder_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="leads out of"):
        check_stays_inside({"name": "x", "datasets": {"jsonl": {"demonstrations": [path]}}})
