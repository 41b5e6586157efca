"""`cotrail trace`: one question, step by step."""

from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.judged import judged
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.cli.terminal.prompt import print_prompt
from cotrail.cli.terminal.reasoned import reasoned
from cotrail.cli.terminal.shown_steps import SNIPPET, json_of, step_body, step_head
from cotrail.cli.terminal.verdict_tables import print_verdicts
from cotrail.cli.terminal.weighed import weighed
from cotrail.common.humanize import count, number
from cotrail.common.printable_text import cut, one_line
from cotrail.faithfulness.weighing import Weighing
from cotrail.services.runs.named_runs import RunRecord, find_run
from cotrail.services.store import reading
from cotrail.services.views import exporting
from cotrail.services.views.answer_details import details_of
from cotrail.services.views.gold_paragraphs import FoundGold, gold_paragraphs, where
from cotrail.services.views.paragraph_names import names_in
from cotrail.services.views.reasoning_trees import turns
from cotrail.services.views.run_verdicts import verdicts_on
from cotrail.services.views.scored_questions import scores_of
from cotrail.services.views.shown_steps import shown_steps
from cotrail.services.views.step_prompts import step_prompt
from cotrail.services.views.tracing import QuestionStatus, TracedQuestion, read_question
from cotrail.systems.judge.judgement import Judgement
from cotrail.systems.searchain.tree import Tree


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
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thought whole.")] = False,
    json: Json = False,
) -> None:
    """Show how a question was answered: each search with what it found, each sentence, and the answer.

    `+` marks a paragraph that was collected at this step, `★` one that the dataset marks as gold; at the end, `✗` names
    each gold paragraph that wasn't collected, and what judges say of the answer follows.
    """
    with reading() as connection:
        if prompt is not None:
            print_prompt(step_prompt(connection, run, question, prompt), json=json)
            return
        record = find_run(connection, run)
        traced = read_question(connection, record.id, question)
        verdicts = verdicts_on(connection, record, traced.key)
    if json:
        print_json(exporting.trace(record, traced, verdicts).document())
    else:
        screen = console()
        _show(screen, record, traced, full=full, thoughts=thoughts)
        print_verdicts(screen, verdicts)


def _show(screen: Console, record: RunRecord, traced: TracedQuestion, *, full: bool, thoughts: bool) -> None:
    screen.print(heading(traced.text))
    screen.print(f"{traced.key} in {record.id}: {traced.status}, {count(len(traced.steps), 'step')}", style="dim")
    labels = turns(record, traced)
    for step in shown_steps(traced):
        screen.print()
        screen.print(step_head(step, labels.get(step.sequence, "")))
        screen.print(Padding(step_body(step, full=full, thoughts=thoughts), (0, 0, 0, 3), expand=False))
    screen.print()
    if traced.details is not None:
        drawing = _drawn(details_of(record, traced), traced, full=full)
        screen.print(drawing or Text(json_of(traced.details)))
        screen.print()
    screen.print(_outcome(record, traced))


def _drawn(details: object, traced: TracedQuestion, *, full: bool) -> RenderableType | None:
    """The details of a question's answer; None where they have no form of their own."""
    match details:
        case Weighing():
            return weighed(details, names_in(traced))
        case Tree():
            return reasoned(details, names_in(traced), full=full)
        case Judgement():
            return judged(details, traced.judged, full=full)
    return None


def _outcome(record: RunRecord, traced: TracedQuestion) -> Table:
    table = grid("dim", "")
    if traced.status == QuestionStatus.FINISHED:
        table.add_row("answer", Text(traced.answer or "(empty)", style="bold"))
    elif traced.reason:
        table.add_row(traced.status, Text(f"{traced.reason.type}: {traced.reason.message}", style="red"))
    if traced.ended_by:
        table.add_row("ended by", traced.ended_by)
    table.add_row("gold", " / ".join(traced.answers) or "none published")
    if traced.judged:  # a verdict is no answer to the question
        return table
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
    identifier = f"  {one_line(gold.id)}" if gold.id else ""
    text.append(f"{identifier}  {where(gold)}", style="not bold dim" if gold.collected else "not bold red")
    if not gold.collected and gold.title:
        text.append(f"\n  {cut(gold.text, SNIPPET)}", style="not bold dim")
    return text
