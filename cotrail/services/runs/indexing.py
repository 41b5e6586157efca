"""Corpora are indexed as jobs, and their paragraphs embedded by workers: queued steps of runs, which no kill loses.

A run has a portion of the paragraphs, and some of these a step. It is found again by its name, which is made of what it
embeds: a command that was killed continues with it. What it embedded is kept for the index, and the run is removed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from cotrail.common.humanize import count
from cotrail.configuration.settings import settings
from cotrail.core.actions.embed import Embed
from cotrail.core.binding import Binding
from cotrail.core.ports.encoders import EMBEDDER
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.results import Embedded
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS, NewIndex
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands.submission import Submission, submit
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import read_questions
from cotrail.services.access.grants import find_granted_engine
from cotrail.services.library.corpora import Indexed, index
from cotrail.services.library.uploaded_files import fill_folder
from cotrail.services.runs.control import cancel_run, prune_runs
from cotrail.services.runs.jobs import IndexRequest, Work, by_place, model_in
from cotrail.services.runs.labels import labels_of, new_id
from cotrail.services.runs.pinning import versions, with_plan
from cotrail.services.runs.progress import ended
from cotrail.services.runs.speed import WatchedRun
from cotrail.services.runs.watching import list_reasons, show_reading, watch
from cotrail.services.store import open_store, reading
from cotrail.systems.embedding import SPEC
from cotrail.systems.registry import find_system

if TYPE_CHECKING:
    from cotrail.engines.retrieval.embeddings import KeptEmbeddings

PER_STEP = 32
"""The paragraphs of a step: those of a worker's threads make a batch of hundreds, and a slow machine is in time."""

PER_RUN = 512 * PER_STEP
"""The paragraphs of a run, which are in memory as it is submitted."""

Steps = Sequence[Sequence[Paragraph]]
Report = Callable[[int, WatchedRun], None]
"""Called with about how many of the paragraphs are embedded, and the run that embeds the next."""


def embed(paragraphs: Iterable[Paragraph], model: str, report: Report, *tags: str) -> None:
    """Have workers embed the paragraphs, for an index with embeddings of this model to be built of what is kept.

    tags: of the runs. Raises UnknownNameError, and InputError where a step failed, is blocked, or was cancelled; what
    is embedded is kept.
    """
    # They need numpy, which indexes of words do without.
    from cotrail.engines.retrieval.embeddings import KeptEmbeddings, profile_of

    embedder, done = find_granted_engine(EMBEDDER.kind, model), 0
    # Once for all runs: the identity is a digest of the model's files.
    own, profile = embedder.identity(), profile_of(embedder)
    binding = Binding(model=own, embedder=own, profile=profile, temperature=0.0, seed=0)
    with closing(KeptEmbeddings(settings().corpora_path / KEPT_EMBEDDINGS, settings().catalogue_path, model)) as kept:
        rest = iter(paragraphs)
        while portion := list(islice(rest, PER_RUN)):
            _Portion(embedder.name, binding, portion, kept, tags).embed(done, report)
            done += len(portion)


def carry_out(work: Work) -> Indexed:
    """Index the files of a job's request."""
    request = msgspec.convert(work.request, IndexRequest)
    fill_folder(work.folder, by_place(request))
    paths = [work.folder / place for place in request.places]
    if request.queued:
        embed(read_corpus(paths), model_in(request.settings), lambda done, _: work.progress(done), work.id)
    new = NewIndex(engine=request.engine, settings=request.settings, progress=work.progress)
    return index(paths, request.name, new)


class _Portion:
    """Paragraphs that one run embeds."""

    def __init__(
        self, model: str, binding: Binding, paragraphs: Sequence[Paragraph], kept: "KeptEmbeddings", tags: Sequence[str]
    ) -> None:
        self._model, self._binding, self._tags = model, binding, tags
        self._steps = [paragraphs[n : n + PER_STEP] for n in range(0, len(paragraphs), PER_STEP)]
        self._size, self._kept = len(paragraphs), kept
        named = "\0".join((binding.embedder, *(each.digest for each in paragraphs)))
        self._name = f"embed-{hashlib.sha256(named.encode()).hexdigest()[:24]}"

    def embed(self, done: int, report: Report) -> None:
        """Embed what isn't kept yet; done: how many paragraphs went before."""
        if not self._lacking:
            return
        if (run := self._former()) is None:
            if not (steps := self._lacking):
                return
            run = self._submitted(steps)

        def show(watched: WatchedRun) -> None:
            own = PER_STEP * (watched.progress.done if watched.progress else 0)
            report(done + min(own, self._size), watched)

        try:
            watch(run, show_reading, show)
            self._collect(run)
        except UnknownNameError:
            pass  # another command that embeds the same took all of it, and removed the run
        except Exception:
            _end(run)
            raise
        except BaseException as error:
            error.add_note(f"the run {run} continues; the same command takes what it embedded")
            raise
        if self._lacking:
            raise InputError(_refusal(run))
        prune_runs([run])

    @property
    def _lacking(self) -> Steps:
        return [each for each in self._steps if self._kept.lacks([paragraph.statement for paragraph in each])]

    def _former(self) -> str | None:
        """The run of a command that was killed, which is under way; one that has ended is collected and removed."""
        with suppress(UnknownNameError):
            with reading() as connection:
                run = resolve_run(connection, self._name)
            if not ended(show_reading(run).progress):
                return run
            self._collect(run)
            _end(run)
            prune_runs([run])
        return None

    def _submitted(self, steps: Steps) -> str:
        run = Submission(
            id=new_id(SPEC.name),
            system=SPEC.name,
            system_version=SPEC.version,
            settings={},
            dataset="jsonl",
            model_name=self._model,
            embedder_name=self._model,
            entailer_name="",
            batched=False,
            binding=self._binding,
            shots={},
            provenance=versions(),
            cell=None,
            served=True,
            labels=labels_of(self._name, self._tags),
        )
        asked = [_question(place, each) for place, each in enumerate(steps, start=1)]
        with open_store() as engine:
            return submit(engine, with_plan(run, asked), asked, find_system)

    def _collect(self, run: str) -> None:
        """Keep what the run has embedded."""
        with reading() as connection:
            for action, result in _embedded(connection, run):
                self._kept.keep([each.statement for each in action.paragraphs], result.vectors, result.cut)


def _question(place: int, paragraphs: Sequence[Paragraph]) -> Question:
    given = tuple(GoldParagraph(title=each.title, text=each.text) for each in paragraphs)
    return Question(id=str(place), text=f"{count(len(given), 'paragraph')} to embed", evidence=given)


def _embedded(connection: Any, run: str) -> Iterator[tuple[Embed, Embedded]]:
    for question in read_questions(connection, run):
        for step in question.steps:
            if isinstance(step.action, Embed) and isinstance(step.result, Embedded):
                yield step.action, step.result


def _end(run: str) -> None:
    with suppress(InputError):  # it may have ended
        cancel_run(run)


def _refusal(run: str) -> str:
    if not (causes := list_reasons(run)):
        return f"the run {run} was cancelled; index again to embed the rest: what it embedded is kept"
    why = f"{causes[0].type}: {causes[0].message}"
    return f"the run {run} didn't embed all ({why}); index again once that is mended: what it embedded is kept"
