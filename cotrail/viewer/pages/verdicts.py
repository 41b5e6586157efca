"""What judges say of a run."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from msgspec import Meta

from cotrail.common.humanize import number
from cotrail.services.results import verdicts
from cotrail.services.results.verdicts import MEANS, QuestionVerdicts
from cotrail.viewer.page import Shown, page

ON_A_PAGE = 50

Place = Annotated[int, Meta(ge=0)]
Which = Literal["judged", "split", "all"]


def _is_split(question: QuestionVerdicts) -> bool:
    """Return whether judges say different things of it."""
    return len({each.judgement.verdict for each in question.verdicts if each.judgement}) > 1


WHICH: Mapping[Which, Callable[[QuestionVerdicts], bool]] = {
    "judged": lambda question: bool(question.verdicts),
    "split": _is_split,
    "all": lambda _: True,
}


@page("/runs/{run}/verdicts")
def show(run: str, which: Which = "judged", start: Place = 0) -> Shown:
    """The verdicts on a run: what they come to, how far the judges agree, and each question's.

    which: the questions that a judge was asked about, those on which judges disagree, or all; start: how many of them
    stand before this page.
    """
    found = verdicts.show_verdicts(run, per_question=True)
    questions = {name: list(filter(holds, found.per_question)) for name, holds in WHICH.items()}
    values = {
        "found": found,
        "judging": {"judges": found.judges, "agreements": found.agreements, "note": MEANS},
        "number": number,
        "counts": {name: len(each) for name, each in questions.items()},
        "which": which,
        "questions": questions[which][start : start + ON_A_PAGE],
        "next": start + ON_A_PAGE if start + ON_A_PAGE < len(questions[which]) else 0,
    }
    return Shown(template="verdicts-page.html", section="runs", values=values)
