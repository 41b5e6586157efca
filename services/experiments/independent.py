"""Schedules of which no run depends on another's result, so that all runs can begin at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Generic

from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.ports.retriever import Corpus
from cotrail.services.experiments.schedule import C, RecordedRuns
from cotrail.services.prepared_run import PreparedRun


class IndependentSchedule(ABC, Generic[C]):
    """See `Schedule`, of which kinds add `plan`; each input is read once, and paths are relative to `folder`."""

    def __init__(self, name: str, trials: Sequence[C], folder: Path) -> None:
        self._name = name
        self._trials = trials
        self._folder = folder
        # The plan, the checks and the submission prepare the same runs, whose files are large.
        self._prepared: dict[str, PreparedRun] = {}
        self._corpus = cache(self._open_corpus)

    @property
    def name(self) -> str:
        """See `Schedule`."""
        return self._name

    @property
    def planned(self) -> int:
        """See `Schedule`."""
        return len(self._trials)

    def check(self) -> Sequence[str]:
        """See `Schedule`; the notes say what stands in for what the paper has."""
        return list(dict.fromkeys(note for trial in self._trials for note in self.prepare(trial).notes))

    def due(self, recorded: RecordedRuns) -> Sequence[C]:
        """See `Schedule`."""
        return [trial for trial in self._trials if trial.name not in recorded.ids]

    def prepare(self, cell: C) -> PreparedRun:
        """See `Schedule`."""
        if cell.name not in self._prepared:
            self._prepared[cell.name] = self._prepare(cell)
        return self._prepared[cell.name]

    @abstractmethod
    def _prepare(self, trial: C) -> PreparedRun:
        """A run, ready to be submitted."""

    def _open_corpus(self, name: str) -> Corpus:
        return corpora_of(settings()).open(name)
