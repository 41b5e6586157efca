"""Requests of a comparison's runs."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.common.structs import merged
from cotrail.evaluation.experiments.compare.experiment import (
    ComparedCell,
    CompareExperiment,
    RunFileKeys,
    cells,
)
from cotrail.evaluation.experiments.paper import Inputs, RunKeys, named_corpora
from cotrail.systems.parts.prompting import SHORT, short_path
from cotrail.systems.registry import find_system

CORPORA = frozenset(("corpus", "corpora"))
"""Keys that name what is searched; a run has one of them."""


class ComparedInputs(Inputs):
    """Questions and demonstrations; gold paragraphs are those of the corpora that a run names, searched or not."""

    def corpora(self) -> tuple[str, ...]:
        """All corpora that the file names."""
        named = (named_corpora(self.keys(cell)) for cell in cells(self.experiment))
        return tuple(dict.fromkeys(name for names in named for name in names))


def request(experiment: CompareExperiment, cell: ComparedCell) -> RunKeys:
    """The request of a run: what the file says of fewer runs goes before what it says of more."""
    files, system = experiment.datasets[cell.dataset], experiment.by_label[cell.method]
    keys: RunFileKeys = experiment.request(
        system.system,
        dataset=files.format or cell.dataset,
        questions=files.questions,
        demonstrations=files.demonstrations,
        model=cell.model,
        temperature=experiment.temperature,
        **({"corpora": files.corpora} if files.corpora else {"corpus": files.corpus}),
    )
    for fewer in (experiment.run, _of_retriever(experiment, cell), system.run, _of_variation(experiment, cell)):
        keys = _overruled(keys, fewer)
    return {**keys, "seed": keys["seed"] + cell.repeat - 1} if cell.repeat > 1 else keys


def _of_retriever(experiment: CompareExperiment, cell: ComparedCell) -> RunFileKeys:
    """The keys of the run's retriever, without those that are short for a setting which its system doesn't have."""
    if not cell.retriever:
        return {}
    retriever = experiment.retrievers[cell.retriever]
    settings = msgspec.to_builtins(find_system(experiment.by_label[cell.method].system).settings())
    had = {key: value for key, value in retriever.run.items() if key not in SHORT or short_path(key, settings)}
    return had | retriever.corpus_of(cell.dataset)


def _of_variation(experiment: CompareExperiment, cell: ComparedCell) -> RunFileKeys:
    return {variation.name: variation.run for variation in experiment.variations}.get(cell.variation, {})


def _overruled(keys: RunFileKeys, by: Mapping[str, Any]) -> RunFileKeys:
    """Both, `by` winning; corpora that it names go in the place of others."""
    kept = keys if CORPORA.isdisjoint(by) else {key: value for key, value in keys.items() if key not in CORPORA}
    return merged(kept, by)
