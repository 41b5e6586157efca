"""`cotrail rethink` and `cotrail rethinking`: final predictions from recorded chains, and their published rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cotrail.cli.request_options import Json, argument, option
from cotrail.cli.terminal.output import console, in_json, print_json, print_rows, print_tables, titled, write_text
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


def rethink(
    file: Annotated[Path, argument("rethink.file")],
    *,
    task: Annotated[Task, option("rethink.task")] = "commonsense",
    chains: Annotated[int | None, option("rethink.chains")] = None,
    voting: Annotated[bool, option("rethink.voting")] = True,
    rules: Annotated[Rules, option("rethink.rules")] = "paper",
    function: Annotated[Function | None, option("rethink.function")] = None,
    similarity_threshold: Annotated[float, option("rethink.similarity-threshold")] = Thresholds().similarity,
    entailment_threshold: Annotated[float, option("rethink.entailment-threshold")] = Thresholds().entailment,
    contradiction_threshold: Annotated[float, option("rethink.contradiction-threshold")] = Thresholds().contradiction,
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


COLUMNS = titled("question", "prediction", "weight", "chains", "gold", "", right=("weight", "chains"))


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
    runs: Annotated[list[str], argument("rethinking.runs")],
    *,
    html: Annotated[Path | None, option("rethinking.html")] = None,
    svg: Annotated[Path | None, option("rethinking.svg")] = None,
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
    if in_json({"tables": compared.tables}, json=json):
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
