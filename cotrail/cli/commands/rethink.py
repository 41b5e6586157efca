"""`cotrail rethink` and `cotrail rethinking`: final predictions from recorded chains, and their published rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.request_options import Json
from cotrail.cli.terminal.output import Column, console, print_json, print_rows, print_tables, write_text
from cotrail.common.humanize import count, number, percent
from cotrail.common.printable_text import cut
from cotrail.errors import InputError
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import Function, Thresholds
from cotrail.services.results import experiment_reports, recorded_chains
from cotrail.services.results.recorded_chains import InferenceOptions, Rethought
from cotrail.services.results.reports.figures import svg_of
from cotrail.systems.parts.rules import Rules

QUESTION_CHARACTERS = 48
"""The most characters shown of a question."""

_FUNCTION = "Options of the faithfulness function"


def rethink(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON Lines of questions with chains and scores.", show_default=False)
    ],
    *,
    task: Annotated[Task, typer.Option(help="That of the questions that name none.")] = "commonsense",
    chains: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the first N of each question.  [default: all]")
    ] = None,
    voting: Annotated[
        bool, typer.Option("--voting/--no-voting", help="Add up over equal predictions, or take the best chain's.")
    ] = True,
    rules: Annotated[
        Rules, typer.Option(help="`released`: read and decided as the authors' code does, where that differs.")
    ] = "paper",
    function: Annotated[
        Function | None,
        typer.Option(
            help="Of appendix A.2.  [default: 1, for temporal questions 2]",
            show_default=False,
            rich_help_panel=_FUNCTION,
        ),
    ] = None,
    similarity_threshold: Annotated[
        float, typer.Option(min=-1, max=1, metavar="T_M", help="Used by function 1.", rich_help_panel=_FUNCTION)
    ] = Thresholds().similarity,
    entailment_threshold: Annotated[
        float, typer.Option(min=0, max=1, metavar="T_E", help="Used by function 3.", rich_help_panel=_FUNCTION)
    ] = Thresholds().entailment,
    contradiction_threshold: Annotated[
        float, typer.Option(min=0, max=1, metavar="T_C", help="Used by function 3.", rich_help_panel=_FUNCTION)
    ] = Thresholds().contradiction,
    json: Json = False,
) -> None:
    """Infer final predictions from recorded chains and their scores, without a model.

    This is the faithful inference of Rethinking with Retrieval; docs/recorded-chains.md describes the file.
    """
    thresholds = Thresholds(
        similarity=similarity_threshold, entailment=entailment_threshold, contradiction=contradiction_threshold
    )
    options = InferenceOptions(
        task=task, chains=chains, voting=voting, rules=rules, function=function, thresholds=thresholds
    )
    rethought = recorded_chains.rethink(file, options)
    if json:
        for each in rethought:
            print_json(each)
    else:
        screen = console()
        print_rows(screen, COLUMNS, [_row(each) for each in rethought])
        screen.print(_summary(rethought, chains))


COLUMNS = (
    *(Column(title=title) for title in ("question", "prediction")),
    *(Column(title=title, right=True) for title in ("weight", "chains")),
    *(Column(title=title) for title in ("gold", "")),
)


def _row(each: Rethought) -> list[str]:
    best = each.weighing.predictions[0] if each.weighing.predictions else None
    return [
        cut(each.question or each.id, QUESTION_CHARACTERS),
        each.prediction or "-",
        number(best.weight if best else None),
        f"{len(best.chains) if best else 0} of {len(each.weighing.chains)}",
        " | ".join(each.answers) or "-",
        "" if each.right is None else "right" if each.right else "wrong",
    ]


def _summary(rethought: Sequence[Rethought], chains: int | None) -> str:
    verdicts = [each.right for each in rethought if each.right is not None]
    parts = [count(len(rethought), "question")]
    if verdicts:
        share = sum(verdicts) / len(verdicts)
        parts.append(
            f"accuracy {percent(share)}: {sum(verdicts)} of {count(len(verdicts), 'question')} with a gold answer"
        )
    if undecided := sum(not each.prediction for each in rethought):
        parts.append(f"{undecided:,} without a prediction, as no chain states one")
    if chains and (fewer := sum(len(each.weighing.chains) < chains for each in rethought)):
        parts.append(f"{fewer:,} with fewer than {count(chains, 'chain')}")
    return "; ".join(parts)


# `cotrail rethinking`: runs of Rethinking with Retrieval and its baselines next to what the paper reports.


def rethinking(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs' ids, the beginnings of them, or `latest`.", show_default=False),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write the tables and the figure as a page.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="PATH", help="Write the figure: accuracy by number of chains.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports.

    Accuracy with fewer chains is computed from the stored ones, without a model. A question without an answer
    counts as wrong.

    Example: `cotrail rethinking rethinking-20250301-4be0c1 self-consistency-20250301-77a2d0 --html report.html`
    """
    compared = experiment_reports.show_rethinking(runs)
    contents = {}
    if svg:
        contents[svg] = _figure(compared)
    if html:
        contents[html] = b"".join(experiment_reports.rethinking_page(runs)).decode()
    for path, content in contents.items():
        write_text(path, content, "choose another path")
    if json:
        print_json({"tables": compared.tables})
        return
    screen = console()
    print_tables(compared.sheets, screen)
    screen.print()
    screen.print(compared.summary, style="dim")
    for path in contents:
        screen.print(f"Wrote {path}.", soft_wrap=True)


def _figure(compared: experiment_reports.ComparedRuns) -> str:
    if compared.figure is None:
        raise InputError("there is no figure, since no run has several chains; leave --svg out or name such a run")
    return svg_of(compared.figure)
