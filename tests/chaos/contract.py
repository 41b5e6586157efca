"""What docs/openapi.json says of the service, put to the test by schemathesis with tokens of all kinds.

`python -m tests.chaos.contract --cases 10000` asks a running service, as a token of each scope, a token of another
project and no token: each operation by itself, then operations one after another with what they answer (stateful).
`--kills` kills the service and PostgreSQL meanwhile, again and again; then 503 and lost connections are admissible.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis.errors import FlakyStrategyDefinition
from msgspec import Struct
from rich.console import Console
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.generation.stateful.state_machine import StepInput, StepOutput
from schemathesis.schemas import BaseSchema
from sqlalchemy import text

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.services.actor import Scope
from cotrail.workers.stack.web import read_address
from tests.chaos.asker import Asker
from tests.chaos.home import free_port
from tests.chaos.outages import outages
from tests.chaos.projects import make_projects, prepare
from tests.chaos.tally import Tally
from tests.faults.stacked import ROOT, Cotrail, stacked

VARIABLES = {"COTRAIL_TOKENS_REQUIRED": "true", "COTRAIL_REQUESTS_PER_MINUTE": "1000000"}

EACH = 8
"""How often each operation is asked by itself; what is left of the cases is asked one after another."""

STEPS = 12
"""The most cases one after another."""

PAUSE_SECONDS = 4.0
"""The most seconds between an answer and the next kill."""

COUNT = examples(phases=[Phase.generate], deadline=None, database=None, suppress_health_check=list(HealthCheck))


class Found(Struct, kw_only=True):
    """What came of it."""

    cases: int
    under_kills: bool
    seconds: float
    kills: dict[str, int]
    tally: Tally
    lost_runs: list[str]
    doubled_runs: list[str]

    @property
    def is_wrong(self) -> bool:
        """Whether anything is."""
        return bool(self.tally.wrong or self.lost_runs or self.doubled_runs)


def trial(cases: int, *, under_kills: bool) -> Found:
    """Ask so many cases."""
    home = Path(tempfile.mkdtemp(prefix="cw-"))
    try:
        with stacked(home, {**VARIABLES, "COTRAIL_API_PORT": str(free_port())}) as cotrail:
            prepare(home, cotrail)
            return _tried(home, cotrail, cases, under_kills=under_kills)
    finally:
        shutil.rmtree(home)


def _tried(home: Path, cotrail: Cotrail, cases: int, *, under_kills: bool) -> Found:
    tally, address, began = Tally(), read_address(home / "api.json"), time.monotonic()
    assert address is not None
    ours, theirs = make_projects(home, cotrail, address.url, "ours", "theirs")
    askers = [Asker(address.url, scope, ours, theirs, tally, under_kills=under_kills) for scope in (*Scope, None)]
    askers.append(Asker(address.url, Scope.ADMIN, theirs, ours, tally, under_kills=under_kills))
    killing = outages(home, cotrail, lambda: tally.answers, PAUSE_SECONDS)
    with killing if under_kills else nullcontext(Counter[str]()) as kills:
        for number, asker in enumerate(askers, 1):
            _ask(asker, tally, cases * number // len(askers))
    lost, doubled = _compared(home, tally)
    return Found(
        cases=tally.cases,
        under_kills=under_kills,
        seconds=time.monotonic() - began,
        kills=dict(kills),
        tally=tally,
        lost_runs=lost,
        doubled_runs=doubled,
    )


def _ask(asker: Asker, tally: Tally, until: int) -> None:
    """Ask until there are so many cases."""
    schema = _schema()
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    alone = min(EACH, (until - tally.cases) // (2 * len(operations)))
    for operation in operations:
        if alone:
            _ask_alone(asker, operation, alone)
    machine = _machine(schema, asker, tally, until)
    while (left := until - tally.cases) > 0:
        # Hypothesis expects the same answer to the same request, and begins again where the service has gone on.
        with suppress(FlakyStrategyDefinition):
            machine.run(settings=examples(COUNT, max_examples=max(left // STEPS, 2), stateful_step_count=STEPS))


def _ask_alone(asker: Asker, operation: Any, times: int) -> None:
    @given(case=operation.as_strategy())
    @examples(COUNT, max_examples=times)
    def ask(case: Case[Any]) -> None:
        asker.ask(case)

    ask()


def _machine(schema: BaseSchema, asker: Asker, tally: Tally, until: int) -> Any:
    """Operations one after another, until there are so many cases."""
    described: Any = schema.as_state_machine()

    class Asking(described):  # type: ignore[misc]
        def step(self, input: StepInput) -> StepOutput | None:  # noqa: A002 - as schemathesis has it
            if tally.cases >= until:
                return None
            answer: Response | None = asker.ask(input.case)
            if answer is None:
                return None
            self.after_call(answer, input.case)
            return StepOutput(answer, input.case)

    return Asking


def _schema() -> BaseSchema:
    # What a schema can't say: which files, models and corpora there are, and what the token allows.
    config = SchemathesisConfig.from_dict({"checks": {"positive_data_acceptance": {"enabled": False}}})
    return schemathesis.openapi.from_path(ROOT / "docs" / "openapi.json", config=config)


def _compared(home: Path, tally: Tally) -> tuple[list[str], list[str]]:
    """The runs that were accepted and aren't there, and those that were made once more than was answered."""
    engine = connect(Settings(home=home, database_url=None).database)
    try:
        with engine.begin() as connection:
            rows = connection.execute(text("SELECT id, name FROM runs LEFT JOIN run_labels ON run_id = id")).all()
    finally:
        engine.dispose()
    names, there = set(tally.accepted.values()), {run for run, _ in rows}
    lost = sorted(tally.accepted.keys() - there)
    return lost, sorted(run for run, name in rows if name in names and run not in tally.accepted)


def main() -> None:
    """Exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.contract", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many requests, by all tokens together")
    parser.add_argument("--kills", action="store_true", help="kill the service and PostgreSQL meanwhile")
    parser.add_argument("--output", type=Path, help="a JSON file for the report")
    arguments = parser.parse_args()
    found = trial(arguments.cases, under_kills=arguments.kills)
    _show(Console(highlight=False, soft_wrap=True), found)
    if arguments.output:
        arguments.output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    sys.exit(found.is_wrong)


def _show(console: Console, found: Found) -> None:
    tally = found.tally
    carried_out = sum(times > 0 for times in tally.carried_out.values())
    console.print(
        f"{found.cases} cases of {len(tally.operations)} operations in {found.seconds:.0f} s; "
        f"{carried_out} operations did what was asked at least once"
    )
    for name, statuses in tally.statuses.items():
        console.print(f"{name}: {dict(sorted(statuses.items()))}")
    console.print(f"{tally.lost} connections lost; kills: {found.kills}; {len(tally.accepted)} runs accepted")
    for what, times in tally.wrong.most_common():
        console.print(f"{times} times {what}\n    {tally.wrong_first[what]}", style="red", markup=False)
    console.print(
        f"{len(tally.wrong) or 'nothing'} wrong, {len(found.lost_runs)} runs lost, {len(found.doubled_runs)} doubled"
    )
    console.print(*found.lost_runs, *found.doubled_runs, sep="\n", style="red", markup=False)


if __name__ == "__main__":
    main()
