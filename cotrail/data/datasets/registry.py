"""The datasets whose questions can be read, and what follows from their records."""

from collections.abc import Collection, Iterator, Mapping

from cotrail.common.nearest import unknown
from cotrail.data.datasets import (
    hotpotqa,
    iirc,
    infotabs,
    jsonl,
    kilt,
    multihop_rag,
    musique,
    open_domain,
    strategyqa,
    trec,
)
from cotrail.data.datasets.spec import DESCRIBED, DatasetSpec, FileFormat, QuestionForm, Recipe, Scoring
from cotrail.errors import UnknownNameError
from cotrail.faithfulness.tasks import Task

_MODULES = (hotpotqa, iirc, infotabs, jsonl, kilt, multihop_rag, musique, open_domain, strategyqa, trec)
_SPECS = {each.name: each for module in _MODULES for each in vars(module).values() if isinstance(each, DatasetSpec)}

DATASETS: dict[str, DatasetSpec] = {name: _SPECS[name] for name in DESCRIBED}
"""The datasets by name, in the order of `datasets.toml`."""

TASK_OF: Mapping[str, Task] = {name: spec.task for name, spec in DATASETS.items() if spec.task}
"""The tasks of the datasets that have one of Rethinking with Retrieval."""

RECIPES: Mapping[str, Recipe] = {name: spec.recipe for name, spec in DATASETS.items() if spec.recipe}
"""The recipes of the corpora that can be built, by dataset."""


def find_dataset(name: str) -> DatasetSpec:
    """The dataset of that name; raises UnknownNameError, which has the nearest name and all."""
    if name not in DATASETS:
        hint = "; name the dataset that the authors of IRCoT processed" if name == "ircot" else ""
        raise UnknownNameError(f"{unknown('dataset', name, DATASETS)}{hint}")
    return DATASETS[name]


def scoring_of(name: str) -> Scoring:
    """How questions of the dataset of that name are scored; UnknownNameError where there is none of that name."""
    return find_dataset(name).scoring


def find_recipe(dataset: str) -> Recipe:
    """The recipe for a dataset's corpus; UnknownNameError lists the known ones."""
    recipe = DATASETS[dataset].recipe if dataset in DATASETS else None
    if recipe is None:
        raise UnknownNameError(unknown("corpus to build for", dataset, RECIPES))
    return recipe


def question_forms() -> Iterator[QuestionForm]:
    """The forms of all datasets; a format that several share comes once for each."""
    return (form for spec in DATASETS.values() for form in spec.forms)


def question_formats() -> Iterator[FileFormat]:
    """The formats of the datasets' questions."""
    return (form.format for form in question_forms())


def datasets_in(formats: Collection[FileFormat]) -> tuple[str, ...]:
    """The datasets whose questions have one of these formats."""
    return tuple(name for name, spec in DATASETS.items() if any(form.format in formats for form in spec.forms))
