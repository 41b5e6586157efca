"""Questions and demonstrations of an experiment's runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.data.corpora.paragraph_ids import paragraphs_in, titled_in
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.data.demonstrations.sets import RELEASED, in_form, listed_set, read_demonstrations
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.metrics.corpus_coverage import located

RunKeys = Mapping[str, Any]
"""A run's request: the keys of its run file, with paths relative to the experiment's file."""


def named_corpora(keys: RunKeys) -> tuple[str, ...]:
    """The names of the corpora that a request names, each once."""
    return tuple(dict.fromkeys(filter(None, (keys.get("corpus"), *keys.get("corpora", ())))))


class Inputs:
    """What the runs of an experiment ask and show, each file read once; a paper with other rules overrides them.

    folder: that of the experiment's file; keys: a run's request; open_corpus: opens a corpus by its name.
    Raises InputError and its kinds for what can't be used.
    """

    locates_gold: ClassVar[bool] = True
    """Whether gold paragraphs are replaced by those of the corpus that they are found in."""

    def __init__(
        self,
        experiment: Any,
        folder: Path,
        keys: Callable[[Any], RunKeys],
        open_corpus: Callable[[str], Corpus],
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.keys = keys
        self.corpus = cache(open_corpus)
        self._drawn = cache(self._draw)
        self._read = cache(read_demonstrations)

    def files(self) -> Iterator[str]:
        """The files that decide the results, whether or not a run needs them."""
        for files in self.experiment.datasets.values():
            yield from filter(None, (files.questions, getattr(files, "demonstrations", None)))

    def corpora(self) -> Iterable[str]:
        """The corpora that decide the results, searched or not: gold paragraphs are located in them."""
        corpora = (files.corpus for files in self.experiment.datasets.values())
        return [name for name in corpora if name and self.locates_gold]

    def notes(self) -> Iterable[str]:
        """What a user should know before the runs begin."""
        return ()

    def questions(self, cell: Any) -> tuple[Question, ...]:
        """The questions of a run: as many as the experiment asks for, drawn by its seed."""
        keys, files = self.keys(cell), self.experiment.datasets[cell.dataset]
        number = getattr(files, "test_questions", getattr(self.experiment, "test_questions", None))
        limit, official = keys.get("limit"), keys.get("official")
        return self._drawn(keys["dataset"], keys["questions"], named_corpora(keys), official, limit, number)

    def instructed(self, cell: Any) -> bool:
        """Whether the demonstrations of a run have an instruction before the question."""
        return bool(self._demonstrations(cell, "demonstrations").instruction)

    def shown(self, cell: Any, form: AnswerForm) -> Demonstrations:
        """The demonstrations of a run in this form; empty if it has none."""
        if form is AnswerForm.TITLES:
            return self._demonstrations(cell, "title_demonstrations")
        return in_form(self._demonstrations(cell, "demonstrations"), form)

    def _demonstrations(self, cell: Any, field: str) -> Demonstrations:
        keys = self.keys(cell)
        if not keys.get(field):
            return Demonstrations()
        demonstrations, sets = self._read(self.folder / keys[field]), keys.get("sets")
        if sets is None:
            return demonstrations
        where = sets if sets == RELEASED else str(self.folder / sets)
        try:
            return listed_set(demonstrations, where, keys.get("set_number") or 1)
        except DemonstrationError as error:
            raise DemonstrationError(f"{keys[field]}: {error}") from error

    def _draw(
        self,
        format_: str,
        name: str,
        corpora: tuple[str, ...],
        official: str | None,
        limit: int | None,
        number: int | None,
    ) -> tuple[Question, ...]:
        path, opened = self.folder / name, [self.corpus(corpus) for corpus in corpora]
        lookup, own = partial(paragraphs_in, opened) if opened else None, self.folder / official if official else None
        questions = load_questions(format_, path, lookup, own)[:limit]
        if unanswered := [question.id for question in questions if not question.answers]:
            raise InputError(f"{path}: the question {unanswered[0]!r} has no answer to compare with; add it")
        sample = questions if number is None else sample_questions(questions, 0, number, self.experiment.seed)[1]
        if opened and self.locates_gold:
            return located(sample, partial(titled_in, opened), snippets=form_of(format_, path).snippets)
        return sample


class GoldAsPublished(Inputs):
    """The same with gold paragraphs as the dataset publishes them."""

    locates_gold = False
