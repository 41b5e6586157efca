"""Which runs of a comparison there are, by what they need, and whether all that its file names is used."""

from collections.abc import Iterator, Mapping, Sequence

from cotrail.common import nearest
from cotrail.core.ports.roles import ROLES
from cotrail.errors import InputError
from cotrail.evaluation.experiments.compare.experiment import ComparedCell, CompareExperiment
from cotrail.evaluation.experiments.compare.requests import request
from cotrail.evaluation.experiments.inputs import RunKeys, named_corpora
from cotrail.systems.spec import Needs

Named = tuple[str, str]
"""A key, and what it names."""


def selected(experiment: CompareExperiment, needs: Mapping[ComparedCell, Needs]) -> Sequence[ComparedCell]:
    """The runs that there are; a system that doesn't search runs once, and not with each retriever.

    needs: of every run that there may be. Raises InputError for what is named and no run has a use for.
    """
    kept = [cell for cell, needed in needs.items() if _is_run(experiment, cell, needed)]
    _check_settings(experiment)
    if unused := sorted(experiment.retrievers.keys() - {cell.retriever for cell in kept}):
        raise InputError(
            f"no run searches by the retriever {unused[0]}; leave it out, or compare a system that searches"
        )
    named = dict.fromkeys(each for cell in needs for each in _named(request(experiment, cell)))
    used = {each for cell in kept for each in _used(request(experiment, cell), needs[cell])}
    for key, value in named:
        if (key, value) not in used:
            raise InputError(f"no run has a use for `{key}` {value}; leave it out, or compare a system that has")
    return kept


def _is_run(experiment: CompareExperiment, cell: ComparedCell, needs: Needs) -> bool:
    return not experiment.retrievers_of(cell.dataset) or needs.corpus == bool(cell.retriever)


def _check_settings(experiment: CompareExperiment) -> None:
    systems = dict.fromkeys(system.system for system in experiment.compared)
    if unused := sorted(experiment.settings.keys() - systems.keys()):
        raise InputError(f"`settings`: {nearest.unknown('system', unused[0], systems)}")


def _named(keys: RunKeys) -> Iterator[Named]:
    """What a run's request names that only some systems use."""
    yield from (("corpus", name) for name in named_corpora(keys))
    yield from ((key, str(keys[key])) for key in ("demonstrations", "prompt") if keys.get(key))
    engines = {**keys.get("engines", {}), **{role: keys[role] for role in ROLES if keys.get(role)}}
    yield from ((role, str(name)) for role, name in engines.items())


def _used(keys: RunKeys, needs: Needs) -> Iterator[Named]:
    """Those that a run uses; a corpus is also where gold paragraphs are looked up."""
    used = {"corpus": True, "demonstrations": bool(needs.forms), "prompt": bool(needs.words)}
    used |= {role.name: True for role in needs.engines}
    yield from ((key, value) for key, value in _named(keys) if used.get(key))
