"""The suite: runs, faults, and the final checks."""

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from msgspec import Struct, field
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from tests.chaos import checks
from tests.chaos.beside import Search
from tests.chaos.disk import own_disk
from tests.chaos.faults import Mend, NotNow, begin
from tests.chaos.home import free_port, made_home
from tests.chaos.schedule import Fault
from tests.chaos.watch import OPEN, Watch
from tests.chaos.world import World
from tests.conftest import wait_until
from tests.faults import inner
from tests.faults.inner import executions
from tests.faults.scripts import sample
from tests.faults.stacked import stacked, steps_of

SYSTEMS = ("ircot", "rethinking", "searchain")
ROUNDS = {"ircot": 3, "rethinking": 1, "searchain": 2}
"""How often a run of each system repeats the sample."""

SIZES = {len(sample()) * rounds for rounds in (1, *ROUNDS.values())}
"""The sizes that a run may have, in questions."""

ENOUGH = 120
"""Another run is submitted when fewer questions than this are open: few enough that runs of all systems are."""

LATER_SECONDS = 0.5
"""Seconds after which a fault is tried again if its victim doesn't run."""

POLL_SECONDS = 0.02

STALL_SECONDS = 120
"""The most seconds without a finished step, under any faults."""

FINISH_SECONDS = 240
"""Seconds in which everything submitted must end once all faults are mended."""

SETTLE_SECONDS = 30
"""Seconds for which late messages and results are then waited for."""

UNENDED = "SELECT count(*) FROM attempts WHERE outcome IS NULL"
UNSEALED = "SELECT count(*) FROM runs WHERE digest IS NULL"

VARIABLES = {
    "COTRAIL_MODEL": "served",
    "COTRAIL_GENERATION_SLOTS": "8",
    # Steps are killed often here without being poison messages.
    "COTRAIL_MAX_ATTEMPTS": "1000",
    # Executions of a silent model are cut off.
    "COTRAIL_DEADLINES": '{"reason": 10, "read": 10}',
    # A stopped worker loses its steps.
    "COTRAIL_LEASE_SECONDS": "3",
    "COTRAIL_HEARTBEAT_SECONDS": "0.5",
    "COTRAIL_RESEND_SECONDS": "1",
}

Say = Callable[[str], None]
Due = list[tuple[float, int, Callable[[], None]]]
"""Functions by due time; the number only breaks ties."""


class Struck(Struct, kw_only=True):
    """A fault and its consequence; recovery: seconds from its mending to the next finished step."""

    fault: Fault
    began: float
    mended: float | None = None
    recovery: float | None = None


class Report(Struct, kw_only=True):
    """Statistics of a suite, and what is wrong at the end; runs: of each system."""

    struck: list[Struck] = field(default_factory=list)
    runs: dict[str, int] = field(default_factory=dict)
    questions: int = 0
    steps: int = 0
    executions: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    failed_submissions: int = 0
    failed_ups: list[str] = field(default_factory=list)
    seconds: float = 0
    finishing_seconds: float = 0
    wrong: list[str] = field(default_factory=list)


def suite(faults: list[Fault], say: Say, search: str | None = None) -> Report:
    """Brings a stack up, has the faults strike it, and tells what is left; `say` is told what goes on.

    search: which search server the corpus is in; without one it is in a folder, and faults of the server are left out.
    """
    with world(search) as there:
        if there.disk.path is None:
            say("this account may not mount a disk for the store: it is never full")
        if search is None:
            say(
                "no search server can be started here: the corpus is in a folder, and faults of the server are left out"
            )
            faults = [fault for fault in faults if not fault.of_search]
        return Suite(there, say).carry_out(faults)


@contextmanager
def world(search: str | None = None) -> Iterator[World]:
    """A running stack with a disk of its own and the sample indexed; removed at the end."""
    with made_home("cc-") as home:
        settings = Settings(home=home.path, database_url=None, broker_url=None)
        server = Search(name=search, home=home.path / "search", port=free_port()) if search else None
        variables = VARIABLES | inner.environment() | ({"COTRAIL_SEARCH_URL": server.url} if server else {})
        with stacked(home.path, variables) as cotrail, own_disk(settings) as disk:
            there = World(home, cotrail, disk, variables, server)
            try:
                there.start()
                yield there
            finally:
                there.end()
                cotrail("down")


class Suite:
    """Execution of one schedule."""

    def __init__(self, world: World, say: Say) -> None:
        self.world = world
        self.say = say
        self.report = Report()
        self._due: Due = []
        self.engine: Engine = connect(world.settings.database)
        self._systems = deque(SYSTEMS)

    def carry_out(self, faults: list[Fault]) -> Report:
        """Runs undisturbed, then under the faults, then to the end; checks what is recorded."""
        began = time.monotonic()
        undisturbed = self._undisturbed()
        for _ in SYSTEMS:
            self._feed()
        watch = Watch(self.world, self._feed, ENOUGH)
        watch.start()
        self._strike(faults, watch)
        watch.stop_feeding()
        self._finish()
        watch.end()
        for struck in self.report.struck:
            struck.recovery = watch.recovery(struck.mended or struck.began)
        self.report.failed_submissions = watch.failed_submissions
        self.report.failed_ups = self.world.failed_ups
        self.engine.dispose()
        self._check(undisturbed)
        self.engine.dispose()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _undisturbed(self) -> dict[str, checks.Steps]:
        """The steps of undisturbed runs, one of each system, which ask each question once."""
        runs = {system: self._submit(system, 1) for system in SYSTEMS}
        wait_until(lambda: self.world.count(OPEN) == 0, "the undisturbed runs are finished", 120)
        return {system: checks.by_question(steps_of(self.engine, run)) for system, run in runs.items()}

    def _feed(self) -> None:
        """Submits a run of the next system, whose turn it still is if that fails."""
        self._submit(self._systems[0], ROUNDS[self._systems[0]])
        self._systems.rotate(-1)

    def _submit(self, system: str, rounds: int) -> str:
        return self.world.home.submit(self.world.cotrail, system, self.world.home.questions(rounds))

    def _strike(self, faults: list[Fault], watch: Watch) -> None:
        """Begins one fault after another, mends each when it is due, and all at the end."""
        last = time.monotonic()
        self._mend_until(lambda: bool(watch.progress), STALL_SECONDS)
        for number, fault in enumerate(faults, start=1):
            earliest = last + fault.after
            self._mend_until(lambda: time.monotonic() >= earliest)  # noqa: B023 - called at once
            began = last
            if fault.at_work and not self._mend_until(lambda: watch.recovery(began) is not None, STALL_SECONDS):  # noqa: B023
                self.report.wrong.append(f"before fault {number} no step was finished for {STALL_SECONDS} s")
            last = self._begin(fault)
            self.say(f"{number:4} {fault}")
        self._mend_until(lambda: not self._due)

    def _begin(self, fault: Fault) -> float:
        """Makes the fault strike as soon as possible; returns the time."""
        while True:
            now = time.monotonic()
            try:
                mend = begin(self.world, fault)
            except NotNow:
                again = time.monotonic() + LATER_SECONDS  # to find that out may have taken longer than that
                self._mend_until(lambda: time.monotonic() > again)  # noqa: B023 - called at once
                continue
            struck = Struck(fault=fault, began=now)
            self.report.struck.append(struck)
            mending: Callable[[], None] = partial(self._mend, struck, mend)
            heapq.heappush(self._due, (now + fault.lasts, len(self.report.struck), mending))
            return now

    def _mend_until(self, condition: Callable[[], bool], seconds: float = float("inf")) -> bool:
        """Mends what is due until a condition holds; returns whether it did in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._due and self._due[0][0] <= time.monotonic():
                heapq.heappop(self._due)[-1]()
            elif time.monotonic() > deadline:
                return False
            else:
                time.sleep(POLL_SECONDS)
        return True

    def _mend(self, struck: Struck, mend: Mend) -> None:
        mend()
        struck.mended = time.monotonic()

    def _finish(self) -> None:
        """Waits until nothing is open any more, or the time is up."""
        began = time.monotonic()
        self.say("all is mended; what is open is finished")
        wait_until(lambda: not self.world.dead(), "the supervisor has brought everything back", 120)
        self._within(FINISH_SECONDS, lambda: self.world.count(OPEN) == 0)
        self._within(SETTLE_SECONDS, lambda: self.world.count(UNENDED) == 0)
        self._within(SETTLE_SECONDS, lambda: self.world.count(UNSEALED) == 0)
        with self.world.redis() as redis:
            self._within(SETTLE_SECONDS, lambda: not checks.no_message_left(redis))
        self.report.finishing_seconds = time.monotonic() - began

    def _within(self, seconds: float, condition: Callable[[], bool]) -> None:
        """Waits for a condition for a limited time; the checks report one that never holds."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.2)

    def _check(self, undisturbed: dict[str, checks.Steps]) -> None:
        report, executed = self.report, executions.read(inner.folder(self.world.home.path) / "executions")
        runs = self.world.table("SELECT id, system FROM runs")
        report.attempts = self.world.table("SELECT coalesce(outcome, 'none'), count(*) FROM attempts GROUP BY 1")
        with self.engine.begin() as connection, self.world.redis() as redis:
            found = [
                checks.every_question_finished(connection),
                checks.every_run_is_whole(connection, SIZES),
                checks.each_step_in_effect_once(connection),
                checks.every_attempt_ended(connection),
                checks.everything_sealed(connection),
                checks.every_tree_has_all(connection),
                checks.attempts_account_for_executions(connection, executed),
                checks.no_message_left(redis),
            ]
        found += [checks.steps_as_undisturbed(self.engine, run, undisturbed[system]) for run, system in runs.items()]
        report.wrong += [line for wrong in found for line in checks.shown(wrong)]
        report.runs, report.executions = dict(Counter(runs.values())), len(executed)
        report.questions = self.world.count("SELECT count(*) FROM questions") or 0
        report.steps = self.world.count("SELECT count(*) FROM steps") or 0
