"""What came out of an experiment by IRCoT's protocol."""

from collections.abc import Sequence

from cli.experiment_report import NO_RESULTS, Report
from cli.output import count
from cotrail.errors import UnavailableError
from cotrail.evaluation.experiments.ircot.cells import CellResult
from cotrail.evaluation.experiments.ircot.figures import build_charts
from cotrail.evaluation.experiments.ircot.measures import is_answered
from cotrail.evaluation.experiments.ircot.tables import build_tables


def ircot_report(results: Sequence[CellResult]) -> Report:
    """The paper's tables and figures; UnavailableError where numpy isn't installed."""
    try:
        return Report(summary=_summary(results), tables=build_tables(results), plots=build_charts(results))
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"the tables need {error.name}; install it with: pip install 'cotrail[reports]'"
        ) from error


def _summary(results: Sequence[CellResult]) -> str:
    if not results:
        return NO_RESULTS
    tried = sum(result.cell.stage == "search" for result in results)
    missing = sum(not is_answered(result) for result in results)
    answered = f"{count(missing, 'run')} with questions that have no answer (yet)" if missing else "all answered"
    return (
        f"{count(tried, 'run')} on the development questions and {len(results) - tried:,} on the test questions; "
        f"{answered}. Scores are points out of 100. What is marked as published is from Trivedi et al., ACL 2023 "
        "(aclanthology.org/2023.acl-long.557)."
    )
