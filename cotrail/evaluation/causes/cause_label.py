"""The cause of a wrong answer as a person sees it."""

from datetime import datetime

from msgspec import Struct

from cotrail.evaluation.causes.cause import Cause


class CauseLabel(Struct, frozen=True, kw_only=True):
    """An annotator's label of a wrong answer; labelled_at: when it was stored, None before."""

    question_id: str
    annotator: str
    cause: Cause
    note: str = ""
    labelled_at: datetime | None = None
