"""`cotrail rethink`: what recorded chains come to, without a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.table import Table

from cli.output import Json, console, print_json
from cotrail.common.humanize import count, cut, number
from cotrail.faithfulness.chains import weigh
from cotrail.faithfulness.recorded import RecordedQuestion, is_right, read_recorded
from cotrail.faithfulness.scores import Function, Thresholds
from cotrail.faithfulness.tasks import FUNCTIONS, Task
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.rules import Rules

SHOWN = 48
"""Characters of a question that are shown."""

_FUNCTION = "Options of the faithfulness function"


class Rethought(Struct, frozen=True, kw_only=True):
    """A question's final prediction, empty where no chain states one; `right` is None where no answer is given."""

    id: str
    question: str
    task: Task
    answers: tuple[str, ...]
    prediction: str
    right: bool | None
    weighing: Weighing


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

    This is the faithful inference of Rethinking with Retrieval; docs/recorded-chains.md has the file's form.
    """
    thresholds = Thresholds(
        similarity=similarity_threshold, entailment=entailment_threshold, contradiction=contradiction_threshold
    )
    rethought = [
        _rethought(replace(question, chains=question.chains[:chains]), function, thresholds, rules, voting=voting)
        for question in read_recorded(file, task, rules)
    ]
    if json:
        for each in rethought:
            print_json(each)
    else:
        screen = console()
        screen.print(_table(rethought))
        screen.print(_summary(rethought, chains))


def _rethought(
    question: RecordedQuestion, function: Function | None, thresholds: Thresholds, rules: Rules, *, voting: bool
) -> Rethought:
    chosen = function or FUNCTIONS[question.task]
    weighing = weigh(question.chains, question.task, function=chosen, thresholds=thresholds, voting=voting, rules=rules)
    prediction = weighing.predictions[0].prediction.strip() if weighing.predictions else ""
    return Rethought(
        id=question.id,
        question=question.text,
        task=question.task,
        answers=question.answers,
        prediction=prediction,
        right=is_right(prediction, question),
        weighing=weighing,
    )


def _table(rethought: Sequence[Rethought]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("question", "prediction", "weight", "chains", "gold", ""):
        table.add_column(name, justify="right" if name in ("weight", "chains") else "left", overflow="fold")
    for each in rethought:
        best = each.weighing.predictions[0] if each.weighing.predictions else None
        table.add_row(
            cut(each.question or each.id, SHOWN),
            each.prediction or "-",
            number(best.weight if best else None),
            f"{len(best.chains) if best else 0} of {len(each.weighing.chains)}",
            " | ".join(each.answers) or "-",
            "" if each.right is None else "right" if each.right else "wrong",
        )
    return table


def _summary(rethought: Sequence[Rethought], chains: int | None) -> str:
    verdicts = [each.right for each in rethought if each.right is not None]
    said = [count(len(rethought), "question")]
    if verdicts:
        share = sum(verdicts) / len(verdicts)
        said.append(f"accuracy {share:.2%}: {sum(verdicts)} of {count(len(verdicts), 'question')} with a gold answer")
    if undecided := sum(not each.prediction for each in rethought):
        said.append(f"{undecided:,} without a prediction, as no chain states one")
    if chains and (fewer := sum(len(each.weighing.chains) < chains for each in rethought)):
        said.append(f"{fewer:,} with fewer than {count(chains, 'chain')}")
    return "; ".join(said)
