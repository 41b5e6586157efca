"""Check of a run against the plan that was sealed as it was submitted, and the plan's digest."""

from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec

from cotrail.audit.asked_questions import AskedQuestions
from cotrail.audit.findings import Finding
from cotrail.audit.records import UNREADABLE, Row, number, text
from cotrail.common.canonical_json import canonical
from cotrail.core.binding import Binding

PLAN = "plan"
"""The key of a run's provenance under which its plan is sealed."""

ALGORITHM = "sha256:"
"""What precedes the hexadecimal digits of a plan's digest, so that it is known for one wherever it is published."""

COLUMNS = {"asked": "text", "answers": "answers", "gold": "gold"}
"""The digests over questions, each with the column that a finding names."""


def plan_digest(plan: object) -> str:
    """The digest of a plan: the SHA-256 of its canonical JSON, the same before and after PostgreSQL has kept it."""
    return f"{ALGORITHM}{json_digest(plan)}"


def json_digest(value: object) -> str:
    """The SHA-256 of a value's canonical JSON, in which a number that is whole has no decimals."""
    return sha256(canonical(whole_numbers(msgspec.to_builtins(value)))).hexdigest()


def plan_of(run: Row) -> Any:
    """The plan in a run's row; None where there is none. Raises one of UNREADABLE."""
    return msgspec.json.decode(text(run, "provenance"), type=dict[str, Any]).get(PLAN)


def digest_in(run: Row) -> str | None:
    """The digest of the plan in a run's row; None where there is none, or what is there can't be read."""
    try:
        plan = plan_of(run)
        return None if plan is None else plan_digest(plan)
    except UNREADABLE:
        return None


def check_plan(run: Row, binding: Binding, asked: AskedQuestions) -> list[Finding]:
    """Find where a run and its questions aren't those that its plan names."""
    try:
        return list(_departures(run, binding, asked))
    except UNREADABLE as error:
        detail = f"its plan can't be read ({error})"
        return [Finding(table="runs", what="changed", run=run["id"], column="provenance", detail=detail)]


def _departures(run: Row, binding: Binding, asked: AskedQuestions) -> Iterator[Finding]:
    plan = plan_of(run)
    if plan is None:
        return
    of_questions = msgspec.to_builtins(asked)
    planned = plan["questions"]
    for part, column in COLUMNS.items():
        before, now = planned[part], of_questions[part]
        if before != now:
            detail = f"the plan of the run is of others: their SHA-256 there is {before}, and it is {now}"
            yield Finding(table="questions", what="changed", column=column, detail=detail)
    for name, value in _decisive(run, binding).items():
        if json_digest(plan.get(name)) != json_digest(value):
            detail = f"the plan of the run has another {name.replace('_', ' ')}"
            yield Finding(table="runs", what="changed", run=run["id"], column="provenance", detail=detail)


def _decisive(run: Row, binding: Binding) -> dict[str, Any]:
    """What a plan repeats of the run's columns, by the plan's keys."""
    return {
        "system": run["system"],
        "system_version": number(run, "system_version"),
        "settings": json_digest(msgspec.json.decode(text(run, "settings"))),
        "demonstrations": msgspec.json.decode(text(run, "demonstrations")),
        "binding": binding,
        "dataset": run["dataset"],
    }


def whole_numbers(value: Any) -> Any:
    """The JSON value with whole numbers as such: PostgreSQL keeps 1e16 as 10000000000000000, and -0.0 as 0.0."""
    match value:
        case dict():
            return {key: whole_numbers(each) for key, each in value.items()}
        case list() | tuple():
            return [whole_numbers(each) for each in value]
        case float() if value.is_integer():
            return int(Decimal(repr(value)))  # the digits that are written down, which aren't all of a large one's
    return value
