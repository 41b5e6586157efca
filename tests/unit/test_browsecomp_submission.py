"""A run as BrowseComp-Plus's evaluation reads it."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from cotrail.cli.commands.results import _write_folder
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.questions import Paragraph
from cotrail.errors import InputError
from cotrail.services.results.exporting import submission_files
from tests.unit.made_runs import NAMELESS, OWLS, question, record, search, step, written

INK = Paragraph(id="ink", title="Ink", text="Stains.")
SENTENCE = Paragraph(id="s", title="", text="Owls are birds.")


def test_a_file_has_what_the_evaluation_needs() -> None:
    steps = (
        search(0, OWLS, NAMELESS),
        written(1, "Owls hunt."),
        search(2, NAMELESS, INK, query="what stains"),
        search(3, INK, action=Open(title="Ink")),
        search(4, SENTENCE, action=Lookup(source="wordnet", text="owl")),
        step(5, Retrieve(query="failed", count=4), None, state="failed"),
    )
    asked = (question("7", answer="Ink.", steps=steps), question("q/8", answer=None, status="failed", steps=()))
    (name, first), (other, second) = submission_files(record(), asked)
    assert (name, other) == ("000001.json", "000002.json")
    assert json.loads(first) == {
        "metadata": {"model": "tiny", "system": "ircot", "run": "run-1"},
        "query_id": "7",
        "tool_call_counts": {"search": 2, "get_document": 1},
        "status": "completed",
        "retrieved_docids": ["o", "n", "ink"],
        "result": [{"type": "output_text", "output": "Ink."}],
    }
    failed = json.loads(second)
    assert (failed["query_id"], failed["status"], failed["result"]) == ("q/8", "failed", [])
    assert (failed["tool_call_counts"], failed["retrieved_docids"]) == ({}, [])


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a full folder", "a file"])
def test_a_folder_is_written_as_a_whole_or_not_at_all(there: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    if there == "a file":
        folder.write_text("mine")
    elif there != "nothing":
        folder.mkdir()
        if there == "a full folder":
            (folder / "mine.json").write_text("{}")
    before = {path.name for path in tmp_path.rglob("*")}
    refused = pytest.raises(InputError, match="choose a new folder") if there in {"a full folder", "a file"} else None
    with refused or nullcontext():
        _write_folder(folder, submission_files(record(), [question("7")]))
    after = {path.name for path in tmp_path.rglob("*")}
    assert after == (before if refused else {"run", "000001.json"})


def test_a_folder_must_be_named() -> None:
    with pytest.raises(InputError, match="name their folder with --output"):
        _write_folder(None, ())
