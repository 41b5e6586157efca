"""Answers as a notebook shows them, be the questions asked in this process or of workers."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec import Struct

from cotrail.common.humanize import count
from cotrail.common.printable_text import cut
from cotrail.common.text_files import write_whole
from cotrail.configuration.files import find_server
from cotrail.configuration.settings import settings
from cotrail.core.questions import Question
from cotrail.core.results import Failure
from cotrail.errors import InputError, NotInstalledError
from cotrail.models.commands.submission import Submission
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.operations.operation import through
from cotrail.services.results import asking, questions
from cotrail.services.results.answering import Asked
from cotrail.services.results.questions import ShownQuestion
from cotrail.services.results.steps import ShownStep
from cotrail.services.runs import watching
from cotrail.services.runs.importing import saved, saved_question
from cotrail.services.runs.requests import ASKED_ID, make_ask_request, make_request
from cotrail.services.runs.speed import WatchedRun
from cotrail.services.runs.submission import submit_run

LOCAL = "local"
"""The `server` that is this machine's own stack."""


class Answered(Struct, frozen=True, kw_only=True):
    """A question as it was answered: its answer, and every step. A notebook shows the steps.

    traced: all that was recorded in this process, None where workers answered; run: theirs, for `cotrail trace`.
    """

    question: ShownQuestion
    traced: TracedQuestion | None = None
    run: str = ""

    @property
    def steps(self) -> tuple[ShownStep, ...]:
        """What was done, each with what came out of it."""
        return self.question.steps

    @property
    def metrics(self) -> dict[str, float]:
        """The scores by name, of a question with published answers or paragraphs."""
        return {name: value for name, value in self.question.scores.items() if value is not None}

    @property
    def answer(self) -> str:
        """The answer; empty where there is none, and where the question failed."""
        return self.question.answer or ""

    @property
    def failure(self) -> Failure | None:
        """Why the question has no answer."""
        question = self.question
        ended = question.reason is not None or question.status == "finished"
        return question.reason if ended else Failure(type="Unanswered", message=f"the question is {question.status}")

    def row(self) -> dict[str, Any]:
        """The question as a row of a table."""
        asked = self.question
        return {
            "id": asked.question_id,
            "question": asked.question,
            "answer": self.answer,
            "gold": list(asked.gold_answers),
            "ended_by": asked.ended_by,
            "steps": len(self.steps),
            **self.metrics,
        }

    def __str__(self) -> str:
        return self.answer

    def __repr__(self) -> str:
        return f"<{self.question.question_id}: {cut(self.answer, 100)!r} after {count(len(self.steps), 'step')}>"

    def _repr_html_(self) -> str:
        from cotrail.viewer.pages.questions import alone  # templates are loaded where they are needed

        return alone(self.question)


class Answers(Struct, frozen=True, kw_only=True):
    """The questions of a run in their order. run: see `Answered`."""

    answered: tuple[Answered, ...]
    submission: Submission | None = None
    questions: tuple[Question, ...] = ()
    run: str = ""

    def save(self, path: str | Path) -> None:
        """Write all that was recorded into a file, which `cotrail import` takes into a store; what is there goes.

        Raises InputError where workers answered: their store has it.
        """
        if self.submission is None:
            raise InputError("workers answered, and their store has it all: `cotrail export` writes it")
        asked = ((question, each.traced) for question, each in zip(self.questions, self, strict=True))
        lines = (saved_question(question, traced) for question, traced in asked if traced)
        write_whole(Path(path), saved(self.submission, lines))

    def __iter__(self) -> Iterator[Answered]:
        return iter(self.answered)

    def __len__(self) -> int:
        return len(self.answered)

    def rows(self) -> list[dict[str, Any]]:
        """A row a question, as `Answered.row`."""
        return [each.row() for each in self]

    @property
    def scores(self) -> dict[str, float]:
        """The mean of each metric that at least one question has."""
        names = dict.fromkeys(name for each in self for name in each.metrics)
        return {name: fmean(each.metrics[name] for each in self if name in each.metrics) for name in names}

    def frame(self) -> Any:
        """The rows as a data frame of pandas, or of polars; raises NotInstalledError where neither is there."""
        for name in ("pandas", "polars"):
            if find_spec(name):
                options = {"infer_schema_length": None} if name == "polars" else {}
                return import_module(name).DataFrame(self.rows(), **options)
        raise NotInstalledError("data frames need pandas or polars: `pip install pandas`; `rows()` needs neither")

    def __repr__(self) -> str:
        return f"<{count(len(self), 'answer')}: {self.scores}>"

    def _repr_html_(self) -> str:
        from cotrail.viewer.rendering import framed

        return framed("answers-alone.html", {"answers": self})


def shown_progress() -> Callable[[int, int], None]:
    """Shows how many questions have ended in a notebook, and nothing elsewhere."""
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return lambda *_: None
    shown = import_module("IPython.display")
    bar = shown.display(shown.HTML("<progress></progress>"), display_id=True)
    words = "<progress max='{1}' value='{0}'></progress> {0:,} of {1:,} questions"
    return lambda done, of: bar.update(shown.HTML(words.format(done, of)))


@contextmanager
def _there(server: str) -> Iterator[None]:
    """Has operations be carried out by a server; raises InputError for one that isn't known."""
    if server == LOCAL:
        yield
        return
    from cotrail.client.transport import RemoteTransport

    found = find_server(server, settings().home)
    transport = RemoteTransport(found.url, found.token)
    try:
        with through(transport):
            yield
    finally:
        transport.close()


def asked_of_workers(server: str, values: Mapping[str, Any]) -> Answered:
    """The answer to one question, ahead of all that is queued."""
    with _there(server):
        for event in asking.ask(make_ask_request(dict(values), {})):
            if isinstance(event, Asked):
                run = event.run
        return _answered(run, ASKED_ID)


def run_by_workers(server: str, values: Mapping[str, Any], progress: Callable[[int, int], None]) -> Answers:
    """A run of these questions, which continues where this process ends."""
    with _there(server):
        [submitted, *_] = submit_run(make_request(dict(values), {})).runs
        try:
            watching.watch(submitted.run, watching.show_reading, partial(_said, progress))
        except BaseException as error:
            error.add_note(f"the run {submitted.run} continues; `cotrail watch {submitted.run}` shows it")
            raise
        listed, after = list[str](), None
        while page := questions.show_questions(submitted.run, limit=1000, after=after):
            listed += [each.question_id for each in page.questions]
            if (after := page.after) is None:
                break
        return Answers(answered=tuple(_answered(submitted.run, key) for key in listed), run=submitted.run)


def _said(progress: Callable[[int, int], None], watched: WatchedRun) -> None:
    if watched.progress:
        progress(watched.progress.done, watched.progress.questions)


def _answered(run: str, key: str) -> Answered:
    return Answered(question=questions.show_question(run, key), run=run)
