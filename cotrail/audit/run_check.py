"""Check of a run's own row, and of its experiment's."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec

from cotrail import __version__
from cotrail.audit.findings import Finding
from cotrail.audit.question_sequence import AskedQuestions, QuestionTotals
from cotrail.audit.records import CLOSED_RUNS, PRUNED, UNREADABLE, Row, number, text
from cotrail.audit.row_digests import GuessBudget, changed_column, run_digest, run_opened
from cotrail.common.structs import canonical
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


def is_imported(run: Row) -> bool:
    """Whether a run was imported, so that nothing but its file says that it happened so."""
    try:
        return "imported" in msgspec.json.decode(text(run, "provenance"))
    except UNREADABLE:
        return False


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
    decisive = {
        "system": run["system"],
        "system_version": number(run, "system_version"),
        "settings": json_digest(msgspec.json.decode(text(run, "settings"))),
        "demonstrations": msgspec.json.decode(text(run, "demonstrations")),
        "binding": binding,
        "dataset": run["dataset"],
    }
    for name, value in decisive.items():
        if json_digest(plan.get(name)) != json_digest(value):
            detail = f"the plan of the run has another {name.replace('_', ' ')}"
            yield Finding(table="runs", what="changed", run=run["id"], column="provenance", detail=detail)


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


def check_run(run: Row | None, experiment: Row | None, questions: QuestionTotals) -> list[Finding]:
    """Check a run's row, and its experiment's."""
    if run is None:
        return [Finding(table="runs", what="removed", detail="there is none")]
    return list(_RunCheck(run, experiment, questions).findings())


def digest_of_run(run: Row, questions: QuestionTotals) -> str | None:
    """A run's digest; None while questions are open."""
    return run_digest(run, questions.root) if questions.ended else None


def wrong_version(written: str, run: Row | None) -> str:
    """Why this version of cotrail can't have written a bundle of that run, in words; empty where it may have."""
    if not _VERSION.fullmatch(written):
        return f"{written!r} is no version of cotrail"
    if _order_of(written) > _order_of(__version__):
        return f"{written} is later than this cotrail, which verifies what its own and former versions write"
    try:
        submitted = msgspec.json.decode(text(run or {}, "provenance")).get("cotrail")
    except UNREADABLE:
        return ""
    if isinstance(submitted, str) and _order_of(written) < _order_of(submitted):
        return f"the run was submitted by the later {submitted}"
    return ""


_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,99}")
_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,9}")


def _order_of(named: str) -> tuple[int, ...]:
    found = _NUMBERS.match(named)
    return tuple(map(int, found[0].split("."))) if found else ()


class _RunCheck:
    def __init__(self, run: Row, experiment: Row | None, questions: QuestionTotals) -> None:
        self.run, self.experiment, self.questions = run, experiment, questions
        self.guesses = GuessBudget()
        self.sealed = run["digest"] is not None and run_digest(run, questions.root) == run["digest"]

    def findings(self) -> Iterator[Finding]:
        """Check the row as it was submitted, then as the run ended; only the first failure is reported."""
        if self.run["experiment_id"] is not None and self.experiment is None:
            yield self._of_experiment("removed", "its run refers to it")
        elif run_opened(self.run, self.experiment) != self.run["opened"]:
            yield self._reconfigured()
        elif self.run["digest"] is not None and self.questions.sound:
            if not self.questions.ended:
                yield self._found("it has a digest, and questions of it haven't ended", column="digest")
            elif not self.sealed:
                yield self._unsealed()
        elif self.run["desired_state"] not in (*CLOSED_RUNS, PRUNED):
            yield self._found(f"no run is {self.run['desired_state']}", column="desired_state")

    def _reconfigured(self) -> Finding:
        if self.sealed:
            return self._of_experiment("changed", "its run's configuration covers another")
        if self._digest({**self.run, "opened": run_opened(self.run, self.experiment)}) == self.run["digest"]:
            return self._found("it isn't the digest of the configuration", column="opened")
        values: dict[str, Iterable[str | None]] = {"size": (str(self.questions.count),), "reuse": ("true", "false")}
        opened = partial(run_opened, experiment=self.experiment)
        changed = changed_column(self.run, text(self.run, "opened"), opened, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        ambiguous = self.experiment is not None and self.run["digest"] is None
        detail = "its configuration isn't as it was submitted"
        return self._found(detail, perhaps=("experiments",) if ambiguous else ())

    def _unsealed(self) -> Finding:
        values = {"desired_state": CLOSED_RUNS, "priority": ("0",)}
        changed = changed_column(self.run, text(self.run, "digest"), self._digest, values, self.guesses)
        if changed is not None:
            return self._found(f"it held {changed[1]!r}", column=changed[0])
        return self._found("its digest is another one than that of its row and its questions")

    def _digest(self, run: Row) -> str:
        return run_digest(run, self.questions.root)

    def _of_experiment(self, what: Any, detail: str) -> Finding:
        run = text(self.run, "id")
        if self.sealed or (what == "removed" and self.run["digest"] is None):
            return Finding(table="experiments", what=what, run=run, detail=detail)
        return Finding(table="runs", what="changed", run=run, detail=detail, column="experiment_id")

    def _found(self, detail: str, **more: Any) -> Finding:
        return Finding(table="runs", what="changed", run=text(self.run, "id"), detail=detail, **more)
