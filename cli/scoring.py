"""`cotrail score`: a run's scores, and those of its questions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.table import Table
from sqlalchemy import Connection

from cli.output import Json, console, count, number, print_json
from cli.store import RunName, reading
from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.file_formats import PROCESSED
from cotrail.data.datasets.loading import load_official
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.experiment import PROCESSED_FORMAT
from cotrail.evaluation.metrics.question_scores import CAVEAT, DEFINITIONS, QuestionScores, means
from cotrail.evaluation.metrics.question_scoring import question_scores
from cotrail.evaluation.metrics.supporting_paragraphs import content_key
from models.queries.progress import Progress, RunRecord, read_progress, read_run, resolve_run
from models.queries.traces import TracedQuestion, read_questions
from models.schema.tables import QuestionStatus


class RunScores(Struct, frozen=True, kw_only=True):
    """A run's scores; each metric is a mean, None where no question has it."""

    run: str
    system: str
    dataset: str
    questions: int
    finished: int
    failed: int
    metrics: dict[str, float | None]
    steps: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int


def score(
    run: RunName,
    *,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="Whose questions they are, for a run on processed files that was submitted as `ircot`.",
            show_default=False,
        ),
    ] = None,
    official: Annotated[
        Path | None,
        typer.Option(
            "--official", metavar="PATH", help="That dataset's own file, which has all answers.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print a run's scores. A question that isn't finished counts 0, so a run under way scores low."""
    if official and dataset is None:
        raise InputError("--official is a dataset's own file; say with --dataset which it is")
    with reading() as connection:
        run_id = resolve_run(connection, run)
        scores = (
            read_scores(connection, run_id) if dataset is None else _rescored(connection, run_id, dataset, official)
        )
    if json:
        print_json(scores)
    else:
        screen = console()
        screen.print(f"{scores.run}: {scores.finished} of {count(scores.questions, 'question')} finished")
        screen.print(table_of(scores))
        screen.print(CAVEAT, style="dim")


def read_scores(connection: Connection, run_id: str) -> RunScores:
    """The scores of a run as it stands."""
    record = read_run(connection, run_id)
    rows = (scores_of(record, question) for question in read_questions(connection, run_id))
    return run_scores(record, read_progress(connection, run_id), rows)


def _rescored(connection: Connection, run_id: str, dataset: str, official: Path | None) -> RunScores:
    """The scores of a run on processed files, which didn't say of which dataset, by that dataset's official metric."""
    record = read_run(connection, run_id)
    if record.dataset != PROCESSED_FORMAT or dataset not in PROCESSED.datasets:
        raise InputError(
            f"--dataset is for runs on {PROCESSED_FORMAT!r}, as {', '.join(PROCESSED.datasets)}; run {run_id} is on "
            f"{record.dataset!r}: leave it out or correct it"
        )
    published = load_official(dataset, official, f"run {run_id}")
    named = replace(record, dataset=dataset)
    rows = (scores_of(named, _answered(each, published)) for each in read_questions(connection, run_id))
    return run_scores(named, read_progress(connection, run_id), rows)


def _answered(question: TracedQuestion, published: Mapping[str, Question]) -> TracedQuestion:
    """The question with the answers of its dataset's own file, where one was needed."""
    if not published:
        return question
    if question.key not in published:
        raise InputError(f"the official file has no question {question.key!r}; give the file of the run's split")
    return replace(question, answers=published[question.key].answers)


def run_scores(record: RunRecord, progress: Progress, rows: Iterable[QuestionScores]) -> RunScores:
    """The scores of a run from those of its questions."""
    return RunScores(
        run=record.id,
        system=record.system,
        dataset=record.dataset,
        questions=progress.total,
        finished=progress.questions[QuestionStatus.FINISHED],
        failed=progress.questions[QuestionStatus.FAILED],
        metrics=means(rows),
        steps=progress.steps,
        prompt_tokens=progress.tokens("prompt_tokens"),
        cached_prompt_tokens=progress.tokens("cached_prompt_tokens"),
        generated_tokens=progress.tokens("generated_tokens"),
    )


def scores_of(record: RunRecord, question: TracedQuestion) -> QuestionScores:
    """The scores of one question of a run."""
    return question_scores(
        record.dataset, question.answer, question.answers, question.paragraphs, question.gold, pinned=question.pinned
    )


def is_gold(paragraph: Paragraph, gold: Sequence[GoldParagraph]) -> bool:
    """Whether the dataset marks the paragraph as needed, going by its content as the recall does."""
    key = content_key(paragraph.title, paragraph.text)
    return any(content_key(each.title, each.text) == key for each in gold)


def table_of(scores: RunScores) -> Table:
    """The metrics, each with its definition."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim")
    for name, definition in DEFINITIONS.items():
        table.add_row(name, number(scores.metrics[name]), definition)
    work = (
        ("steps", scores.steps, "steps carried out"),
        ("prompt_tokens", scores.prompt_tokens, "tokens in prompts"),
        ("cached_prompt_tokens", scores.cached_prompt_tokens, "those of them that were in the model's cache already"),
        ("generated_tokens", scores.generated_tokens, "tokens that the model wrote"),
    )
    for name, value, definition in work:
        table.add_row(name, f"{value:,}", definition)
    return table
