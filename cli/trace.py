"""`cotrail trace`: one question, step by step."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.evidence_steps import evidence_step
from cotrail.cli.output import console, grid, heading, print_json
from cotrail.cli.prompt import print_prompt
from cotrail.cli.reasoned import reasoned
from cotrail.cli.weighed import compared, weighed
from cotrail.common.humanize import count, number
from cotrail.common.printable_text import cut, one_line
from cotrail.core.paragraphs import Hit
from cotrail.faithfulness.weighing import Weighing
from cotrail.services import exporting
from cotrail.services.answer_details import details_of
from cotrail.services.auditing import step_prompt
from cotrail.services.evidence_texts import name_of
from cotrail.services.gold_paragraphs import FoundGold, gold_paragraphs, where
from cotrail.services.named_runs import RunRecord, find_run
from cotrail.services.reasoning_trees import turns
from cotrail.services.scoring import scores_of
from cotrail.services.store import reading
from cotrail.services.tracing import QuestionStatus, TracedQuestion, TracedStep, is_gold, read_question
from cotrail.services.written_facts import written_facts
from cotrail.systems.searchain.tree import Tree

SNIPPET = 160
"""The most characters shown of a paragraph; `--full` shows all of it."""

MESSAGE, LINES = 1000, 20
"""The most characters and lines shown of what a model wrote; `--full` shows all of it."""


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
    full: Annotated[bool, typer.Option("--full", help="Show paragraphs and what the model wrote whole.")] = False,
    json: Json = False,
) -> None:
    """Show how a question was answered: each search with what it found, each sentence, and the answer.

    `+` marks a paragraph that was collected at this step, `★` one that the dataset marks as gold; at the end, `✗` names
    each gold paragraph that wasn't collected.
    """
    with reading() as connection:
        if prompt is not None:
            print_prompt(step_prompt(connection, run, question, prompt), json=json)
            return
        record = find_run(connection, run)
        traced = read_question(connection, record.id, question)
    if json:
        print_json(exporting.trace(record, traced))
    else:
        _show(console(), record, traced, full=full)


def _show(screen: Console, record: RunRecord, traced: TracedQuestion, *, full: bool) -> None:
    screen.print(heading(traced.text))
    screen.print(f"{traced.key} in {record.id}: {traced.status}, {count(len(traced.steps), 'step')}", style="dim")
    titles = {hit.paragraph.digest: name_of(hit.paragraph) for step in traced.steps for hit in step.hits}
    details = details_of(record, traced)
    said = turns(record, traced)
    for step in traced.steps:
        screen.print()
        screen.print(_head(step, said.get(step.sequence, "")))
        screen.print(Padding(_body(step, traced, titles, full=full), (0, 0, 0, 3), expand=False))
    screen.print()
    if traced.details is not None:
        screen.print(_drawn(details, titles, full=full) or Text(_json(traced.details)))
        screen.print()
    screen.print(_outcome(record, traced))


def _drawn(details: object, titles: Mapping[str, str], *, full: bool) -> RenderableType | None:
    """The details of an answer, given the paragraphs' names by digest; None where they have no form of their own."""
    match details:
        case Weighing():
            return weighed(details, titles)
        case Tree():
            return reasoned(details, titles, full=full)
    return None


def _head(step: TracedStep, turn: str) -> Text:
    text = Text(f"{step.sequence:>2} ", style="dim")
    text.append(step.kind, style="bold cyan")
    if turn:
        text.append(f"  {turn}", style="cyan")
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
    return _written(step, full=full)


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


def _written(step: TracedStep, *, full: bool) -> Text:
    if step.generated is None:
        return _not_done(step, nothing="not done yet")
    facts = [*written_facts(step), *([step.worker] if step.worker else [])]
    text = step.generated.text if full else _beginning(step.generated.text)
    return Text(text or "nothing").append(f"\n{' · '.join(facts)}", style="dim")


def _beginning(text: str) -> str:
    """A text whose end is left out where it would bury what stands below it."""
    shown = "\n".join(text[:MESSAGE].split("\n", LINES)[:LINES])
    left_out = len(text) - len(shown)
    return f"{shown}…\n({left_out:,} more characters: --full)" if left_out else text


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
    scores = scores_of(record, traced)
    em, cover_em, rouge_l = scores["answer_em"], scores["cover_em"], scores["rouge_l"]
    agreement = [f"EM {number(em, 0)}", f"F1 {number(scores['answer_f1'], 2)}"]
    if cover_em != em:
        agreement.append(f"cover EM {number(cover_em, 0)}")
    if rouge_l is not None:
        agreement.append(f"ROUGE-L {number(rouge_l, 2)}")
    agreement.append(f"paragraph recall {number(scores['paragraph_recall'], 2)}")
    table.add_row("scores", ", ".join(agreement))
    for place, gold in enumerate(gold_paragraphs(traced, record.dataset)):
        table.add_row("" if place else "gold paragraphs", _gold(gold))
    return table


def _gold(gold: FoundGold) -> Text:
    text = Text("★ " if gold.collected else "✗ ", style="yellow" if gold.collected else "red")
    text.append(one_line(cut(gold.name, SNIPPET)), style="not dim bold")
    known = f"  {one_line(gold.id)}" if gold.id else ""
    text.append(f"{known}  {where(gold)}", style="not bold dim" if gold.collected else "not bold red")
    if not gold.collected and gold.title:
        text.append(f"\n  {cut(gold.text, SNIPPET)}", style="not bold dim")
    return text
