"""`cotrail trace`: one question, step by step."""

from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.cli.terminal.shown_steps import (
    SNIPPET,
    json_of,
    judged,
    print_prompt,
    reasoned,
    step_body,
    step_head,
    weighed,
)
from cotrail.cli.terminal.verdict_tables import print_verdicts
from cotrail.common.humanize import count, percent
from cotrail.common.printable_text import cut, one_line
from cotrail.faithfulness.weighing import Weighing
from cotrail.services.results import questions, steps
from cotrail.services.results.question_records import details_in
from cotrail.services.results.questions import ShownQuestion
from cotrail.services.results.reasoning import FoundGold, where
from cotrail.services.results.steps import QuestionStatus
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
    if prompt is not None:
        print_prompt(steps.show_prompt(run, question, prompt), json=json)
    elif json:
        print_json(questions.show_trace(run, question))
    else:
        screen, shown = console(), questions.show_question(run, question)
        _show(screen, shown, full=full, thoughts=thoughts)
        print_verdicts(screen, shown.verdicts)


def _show(screen: Console, shown: ShownQuestion, *, full: bool, thoughts: bool) -> None:
    screen.print(heading(shown.question))
    counted = count(len(shown.steps), "step")
    screen.print(f"{shown.question_id} in {shown.run}: {shown.status}, {counted}", style="dim")
    for step in shown.steps:
        screen.print()
        screen.print(step_head(step, shown.turns.get(step.sequence, "")))
        screen.print(Padding(step_body(step, full=full, thoughts=thoughts), (0, 0, 0, 3), expand=False))
    screen.print()
    if shown.details is not None:
        screen.print(_drawn(shown, full=full) or Text(json_of(shown.details)))
        screen.print()
    screen.print(_outcome(shown))


def _drawn(shown: ShownQuestion, *, full: bool) -> RenderableType | None:
    """The details of a question's answer; None where they have no form of their own."""
    match details_in(shown.system, shown.system_version, shown.details):
        case Weighing() as details:
            return weighed(details, shown.names)
        case Tree() as details:
            return reasoned(details, shown.names, full=full)
        case Judgement() as details:
            return judged(details, shown.judged, full=full)
    return None


def _outcome(shown: ShownQuestion) -> Table:
    table = grid("dim", "")
    if shown.status == QuestionStatus.FINISHED:
        table.add_row("answer", Text(shown.answer or "(empty)", style="bold"))
    elif shown.reason:
        table.add_row(shown.status, Text(f"{shown.reason.type}: {shown.reason.message}", style="red"))
    if shown.ended_by:
        table.add_row("ended by", shown.ended_by)
    table.add_row("gold", " / ".join(shown.gold_answers) or "none published")
    if shown.judged:  # a verdict is no answer to the question
        return table
    scores = shown.scores
    em, cover_em, rouge_l = scores["answer_em"], scores["cover_em"], scores["rouge_l"]
    agreement = [f"EM {percent(em)}", f"F1 {percent(scores['answer_f1'])}"]
    if cover_em != em:
        agreement.append(f"cover EM {percent(cover_em)}")
    if rouge_l is not None:
        agreement.append(f"ROUGE-L {percent(rouge_l)}")
    agreement.append(f"paragraph recall {percent(scores['paragraph_recall'])}")
    table.add_row("scores", ", ".join(agreement))
    for place, gold in enumerate(shown.gold_paragraphs):
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
