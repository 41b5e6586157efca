"""`cotrail trace`: one question, step by step."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.arguments import Json, RunName
from cli.evidence_steps import evidence_step
from cli.output import console, grid, heading, print_json
from cli.prompt import print_prompt
from cli.reasoned import reasoned
from cli.weighed import compared, weighed
from cotrail.common.humanize import count, cut, number
from cotrail.common.printable_text import one_line
from cotrail.core.paragraphs import Hit
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.searchain.tree import Tree
from models.queries.runs import RunRecord, read_run, resolve_run
from models.queries.traces import TracedQuestion, TracedStep, read_question, rebuild_prompt
from models.schema.states import QuestionStatus
from services import exporting
from services.answer_details import details_of
from services.evidence_texts import name_of
from services.store import reading
from services.written_facts import written_facts

SNIPPET = 160
"""The most characters shown of a paragraph; `--full` shows all of it."""

DETAILS: Mapping[type[object], Callable[[Any, Mapping[str, str]], RenderableType]] = {Weighing: weighed, Tree: reasoned}
"""How the details of answers are drawn, by their type, given the paragraphs' names by digest; others are JSON."""


def trace(
    run: RunName,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question's id, or its number in the run, from 1.")
    ],
    prompt: Annotated[
        int | None,
        typer.Option("--prompt", metavar="STEP", help="Print the exact prompt of this step, and nothing else."),
    ] = None,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show paragraphs whole.")] = False,
    json: Json = False,
) -> None:
    """Show how a question was answered: each search with what it found, each sentence, and the answer.

    `+` marks a paragraph that was collected at this step, `★` one that the dataset marks as gold.
    """
    with reading() as connection:
        record = read_run(connection, resolve_run(connection, run))
        if prompt is not None:
            text = rebuild_prompt(connection, record.id, question, prompt)
            print_prompt(text, record.id, question, prompt, json=json)
            return
        traced = read_question(connection, record.id, question)
    if json:
        print_json(exporting.trace(record, traced))
    else:
        _show(console(), record, traced, full=full)


def _show(screen: Console, record: RunRecord, traced: TracedQuestion, *, full: bool) -> None:
    screen.print(heading(traced.text))
    screen.print(f"{traced.key} in {record.id}: {traced.status}, {count(len(traced.steps), 'step')}", style="dim")
    titles = {hit.paragraph.digest: name_of(hit.paragraph) for step in traced.steps for hit in step.hits}
    for step in traced.steps:
        screen.print()
        screen.print(_head(step))
        screen.print(Padding(_body(step, traced, titles, full=full), (0, 0, 0, 3)))
    screen.print()
    if traced.details is not None:
        details = details_of(record, traced)
        drawn = DETAILS.get(type(details))
        screen.print(drawn(details, titles) if drawn else Text(_json(traced.details)))
        screen.print()
    screen.print(_outcome(record, traced))


def _head(step: TracedStep) -> Text:
    text = Text(f"{step.sequence:>2} ", style="dim")
    text.append(step.kind, style="bold cyan")
    if step.source is not None:
        text.append(f"  {step.source}", style="cyan")
    if step.sample is not None:
        text.append(f"  chain {step.sample + 1}", style="cyan")
    if step.query is not None:
        text.append(f"  “{one_line(step.query)}”")
    if len(step.compared) == 1:
        text.append(f"  “{one_line(step.compared[0])}”")
    return text


def _body(step: TracedStep, traced: TracedQuestion, titles: Mapping[str, str], *, full: bool) -> Table | Text:
    if step.compared:
        return compared(step, titles) or _not_done(step, nothing="nothing to compare with")
    if step.query is not None:
        return _hits(step, traced, full=full)
    if step.request is not None:
        return evidence_step(step, titles) or _recorded(step)
    return _written(step)


def _recorded(step: TracedStep) -> Text:
    """Request and result of a kind that has no form of its own here."""
    found = Text(_json(step.result)) if step.result is not None else _not_done(step, nothing="no result")
    return Text(_json(step.request), style="dim").append("\n").append_text(found)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _hits(step: TracedStep, traced: TracedQuestion, *, full: bool) -> Table | Text:
    if step.failure or not step.hits:
        return _not_done(step, nothing="nothing found")
    table = grid("green", "yellow", "dim", "dim", "")
    table.columns[2].justify = table.columns[3].justify = "right"
    for hit in step.hits:
        table.add_row(
            "+" if hit.paragraph.digest in step.new else " ",
            "★" if is_gold(hit.paragraph, traced.gold) else " ",
            str(hit.rank),
            f"{hit.score:.2f}",
            _paragraph(hit, full=full),
        )
    return table


def _paragraph(hit: Hit, *, full: bool) -> Text:
    text = Text(one_line(hit.paragraph.title), style="bold")
    body = hit.paragraph.text if full else cut(hit.paragraph.text, SNIPPET)
    return text.append(f"  {body}", style="not bold dim")


def _written(step: TracedStep) -> Text:
    if step.generated is None:
        return _not_done(step, nothing="not done yet")
    facts = [*written_facts(step), *([step.worker] if step.worker else [])]
    return Text(step.generated.text or "nothing").append(f"\n{' · '.join(facts)}", style="dim")


def _not_done(step: TracedStep, *, nothing: str) -> Text:
    if step.failure:
        return Text(f"failed: {step.failure.type}: {step.failure.message}", style="red")
    return Text(nothing if step.state == "finished" else step.state, style="dim")


def _outcome(record: RunRecord, traced: TracedQuestion) -> Table:
    table = grid("dim", "")
    if traced.status == QuestionStatus.FINISHED:
        table.add_row("answer", Text(traced.answer or "(empty)", style="bold"))
    elif traced.reason:
        table.add_row(traced.status, Text(f"{traced.reason.type}: {traced.reason.message}", style="red"))
    table.add_row("gold", " / ".join(traced.answers) or "none published")
    scores = traced.scores(record.dataset)
    agreement = [f"EM {number(scores.answer_em, 0)}", f"F1 {number(scores.answer_f1, 2)}"]
    if scores.cover_em != scores.answer_em:
        agreement.append(f"cover EM {number(scores.cover_em, 0)}")
    if scores.rouge_l is not None:
        agreement.append(f"ROUGE-L {number(scores.rouge_l, 2)}")
    table.add_row("scores", ", ".join([*agreement, f"recall {number(scores.support_recall, 2)}"]))
    return table
