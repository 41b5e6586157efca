"""Progress of an experiment."""

from msgspec import Struct


class ExperimentProgress(Struct, frozen=True, kw_only=True):
    """Progress of an experiment.

    runs: those that are submitted; planned: all; done: those with no open questions, or stopped by one cause.
    stuck: the ids of done runs with blocked or cancelled questions, which can't be scored.
    """

    planned: int
    runs: int
    done: int
    questions: int
    answered: int
    steps: int
    adopted: int
    stuck: tuple[str, ...]

    @property
    def over(self) -> bool:
        """Return whether nothing more will happen without a person's help."""
        return self.done == self.runs and (self.runs == self.planned or bool(self.stuck))
