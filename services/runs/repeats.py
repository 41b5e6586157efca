"""Repeats of a run: the same questions asked again with other seeds, each time as a run of its own."""

from collections.abc import Iterator

from msgspec.structs import replace

from cotrail.common.dotted_names import dotted
from cotrail.core.repeats import Repeat, provenance_of
from cotrail.models.commands.new_runs import Submission
from cotrail.models.records.labels import Labels
from cotrail.services.runs.labels import labels_of
from cotrail.services.runs.run_ids import new_id
from cotrail.systems.spec import Needs


def repeated(submission: Submission, times: int) -> Iterator[Submission]:
    """The run as often as it is asked for, each time with the next seed; InputError where a name gets too long."""
    if times == 1:
        yield submission
        return
    # Submitted at the same moment, so that `latest` is the one with the last id: it is to mean the first.
    ids = sorted((submission.id, *(new_id(submission.system) for _ in range(1, times))), reverse=True)
    for place, run_id in enumerate(ids):
        repeat = Repeat(of=ids[0], number=place + 1, times=times)
        yield replace(
            submission,
            id=run_id,
            binding=replace(submission.binding, seed=submission.binding.seed + place),
            provenance={**submission.provenance, **provenance_of(repeat)},
            labels=_labels(submission.labels, place + 1),
        )


def are_alike(submission: Submission, needs: Needs) -> bool:
    """Whether a run comes out the same with any seed: it samples nothing, and its profile is deterministic."""
    # Systems may have temperatures of their own, which go before the run's.
    own = (value for path, value in dotted(submission.settings) if path.rpartition(".")[2] == "temperature")
    samples = needs.samples or submission.binding.temperature or any(own)
    return submission.binding.profile == "deterministic" and not samples


def _labels(first: Labels, number: int) -> Labels:
    """The labels of a repeat; the names of the further ones end in their numbers."""
    name = first.name if first.name is None or number == 1 else f"{first.name}-{number}"
    return labels_of(name, first.tags)
