"""`cotrail verdicts`: what judges say of a run."""

from typing import Annotated

import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.verdict_tables import print_agreement, print_judges, print_kinds, print_questions
from cotrail.common.humanize import count
from cotrail.services.results import verdicts as operations
from cotrail.services.results.verdicts import MEANS, RunVerdicts


def verdicts(
    run: RunName,
    *,
    questions: Annotated[bool, typer.Option("--questions", help="Show the verdicts on each question, too.")] = False,
    json: Json = False,
) -> None:
    """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

    `cotrail judge RUN --model NAME` has a model judge it. What judges under way have said so far counts.
    """
    found = operations.show_verdicts(run, per_question=questions)
    if json:
        print_json(found)
    else:
        _print(found)


def _print(found: RunVerdicts) -> None:
    screen = console()
    screen.print(
        f"{found.run}: {found.answered:,} of {count(found.questions, 'question')} answered, "
        f"{count(len(found.judges), 'judge')}"
    )
    if not found.judges:
        screen.print(f"`cotrail judge {found.run} --model NAME` has a model judge it.")
        return
    print_judges(screen, found.judges)
    screen.print(MEANS, style="dim")
    print_kinds(screen, found.judges)
    for each in found.agreements:
        screen.print()
        print_agreement(screen, each)
    if found.per_question:
        screen.print()
        print_questions(screen, found)
