"""Grids of runs: their stages, and the file of a free one."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotrail.errors import InputError
from cotrail.evaluation.experiments.grid import PAPER, GridExperiment, GridFiles, Variation
from cotrail.evaluation.experiments.registry import PAPERS, experiment_of, paper_of
from cotrail.evaluation.experiments.stages import GridCell, Stage
from cotrail.services.experiments.files import read_experiment_file
from cotrail.services.requests import RunRequest, make_request

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text("utf-8")
_, _, SECTION = PAGE.partition("## A grid of your own")
EXAMPLE: dict[str, Any] = tomllib.loads(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])


def read(described: dict[str, Any]) -> GridExperiment:
    experiment = experiment_of(described)
    assert isinstance(experiment, GridExperiment)
    return experiment


def requests(experiment: GridExperiment) -> dict[str, RunRequest]:
    """All requests by the names of their runs."""
    cells = [cell for stage in PAPER.stages(experiment) for cell in stage.cells]
    return {cell.name: make_request(PAPER.request(experiment, cell)) for cell in cells}


def cell(method: str) -> GridCell:
    return GridCell(dataset="d", model="m", method=method)


@pytest.mark.parametrize("protocol", PAPERS)
def test_each_line_is_a_paper_of_that_protocol(protocol: str) -> None:
    assert paper_of(protocol).file.__struct_config__.tag == protocol


def test_the_page_s_example_has_a_run_for_each_cell_in_the_order_of_its_file() -> None:
    runs = requests(read(EXAMPLE))
    assert list(runs) == [
        f"hotpotqa/{model}/{run}"
        for model in ("smollm2-135m", "llama")
        for run in ("one-step", "one-step/another-seed", "ircot", "ircot/short", "ircot/another-seed")
    ]
    short, seeded = runs["hotpotqa/llama/ircot/short"], runs["hotpotqa/llama/ircot/another-seed"]
    assert (short.max_sentences, short.reader, short.seed, short.temperature) == (4, "cot", 0, 0.0)
    assert (seeded.max_sentences, seeded.reader, seeded.seed, seeded.temperature) == (None, "cot", 1, 0.7)
    assert {(run.dataset, run.corpus, run.demonstrations) for run in runs.values()} == {
        ("hotpotqa", "hotpotqa", "prompts/hotpotqa.txt")
    }


def test_the_page_names_every_key() -> None:
    named = set(re.findall(r"\w+", SECTION.partition("\n## ")[0]))
    assert named >= {*GridExperiment.__struct_fields__, *GridFiles.__struct_fields__, *Variation.__struct_fields__}


def test_settings_of_a_variation_go_before_those_of_the_file() -> None:
    varied = {"name": "v", "run": {"settings": {"retrieval": {"retrieval_count": 7}}}}
    given = {"ircot": {"max_sentences": 3, "retrieval": {"retrieval_count": 2, "max_paragraphs": 9}}}
    runs = requests(read(EXAMPLE | {"settings": given, "variations": [varied], "models": ["m"]}))
    assert runs["hotpotqa/m/ircot"].settings == given["ircot"]
    assert runs["hotpotqa/m/ircot/v"].settings == {
        "max_sentences": 3,
        "retrieval": {"retrieval_count": 7, "max_paragraphs": 9},
    }
    assert runs["hotpotqa/m/one-step"].settings == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"systems": []}, "systems"),
        ({"variations": [{"name": "a", "run": {}}, {"name": "a", "run": {}}]}, "two variations a"),
        ({"variations": [{"name": "a", "systems": ["ircott"], "run": {}}]}, "did you mean ircot"),
        ({"variations": [{"name": "a/b", "run": {}}]}, "name"),
        ({"datasets": {"hotpotqa": {"corpus": "c"}}}, "questions"),
        ({"grid": {}}, "grid"),
        ({"protocol": "gird"}, "gird"),
        ({"protocol": ["grid"]}, "grid"),
    ],
)
def test_what_a_grid_does_not_have_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        experiment_of(EXAMPLE | change)
    path = tmp_path / "mine.toml"
    path.write_text("protocol = 'gird'\n")
    with pytest.raises(InputError, match=r"mine\.toml: .*gird.*did you mean grid"):
        read_experiment_file(path)


def test_a_key_that_no_run_has_is_refused() -> None:
    with pytest.raises(InputError, match="retrieval_cuont"):
        requests(read(EXAMPLE | {"run": {"retrieval_cuont": 3}}))


def test_a_stage_plans_with_its_first_cell_what_it_may_do_with_any() -> None:
    stage = Stage(
        cells=(cell("a"), cell("b")),
        choose=lambda scores: max(scores, key=lambda each: len(scores[each])),
        then=lambda best: (cell(f"{best.method}1"), cell(f"{best.method}2")),
    )
    assert [each.method for each in stage.planned] == ["a", "b", "a1", "a2"]
    assert [each.method for each in stage.possible] == ["a", "b", "a1", "a2", "b1", "b2"]
    assert Stage(cells=(cell("a"),)).planned == Stage(cells=(cell("a"),)).possible == (cell("a"),)
