"""The supervisor, `python -m cotrail.workers.stack.supervisor NAME`: starts again what `cotrail up` started and died.

It also ends what exists and doesn't work (`cotrail.workers.stack.supervisor`). Two supervisors run. One is active, and
treats the other one as any service; that one waits for a lock that the kernel releases as soon as the active one has
ended, in whatever way, and ends the active one if it is frozen.
"""

import logging
import sys
import time
from collections.abc import Iterable

from cotrail.common.log_formatting import hide_in_logs, print_safely
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError
from cotrail.workers.health import announce
from cotrail.workers.logs import keep_bounded, keep_others_bounded
from cotrail.workers.stack.process import wait_for_an_end
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import SERVERS, SUPERVISORS, Restarts, died, failed, started

# The end of services that exist and don't work: frozen ones, and those that say that they can't continue.

PATIENCE_SECONDS = 120.0
"""How long a service must have failed its health check without a pause: any machine is slow for a while."""

CHECK_SECONDS = 10.0
"""The pause between two checks."""

LONGEST_GAP = 2 * CHECK_SECONDS
"""The most seconds that count between two checks.

Where more passed, this process was frozen itself, most likely with the whole machine, and has seen nothing of them.
"""


class Guard:
    """Ends services that have failed their health check for too long."""

    def __init__(self, stack: Stack, *, patience: float = PATIENCE_SECONDS, pause: float = CHECK_SECONDS) -> None:
        self._stack = stack
        self._patience = patience
        self._pause = pause
        self._checked = time.monotonic()
        self._failing: dict[tuple[str, int], float] = {}

    def end_frozen(self, names: Iterable[str]) -> dict[str, str]:
        """Check these services if it is time to, and end those that are due; returns why by their names.

        Raises UnavailableError where a process can't be killed.
        """
        passed = time.monotonic() - self._checked
        if passed < self._pause:
            return {}
        self._checked += passed
        # By process too: another one in its place begins with a count of its own.
        problems = {(name, frozen[0]): frozen[1] for name in names if (frozen := self._stack.frozen(name))}
        counted = min(passed, LONGEST_GAP)
        # At first sight the count is 0, as nobody knows since when it has been failing.
        self._failing = {each: self._failing.get(each, -counted) + counted for each in problems}
        return {
            name: f"killed, as it didn't work for {self._failing[name, pid]:.0f} s: {problem}"
            for (name, pid), problem in problems.items()
            if self._failing[name, pid] >= self._patience and self._stack.kill(name, pid)
        }


LOOK_SECONDS = 2.0
"""The longest pause between two looks while nothing has died; a death ends it."""

RESTART_LOOK_SECONDS = 0.2
"""The pause between two looks while something is dead. Each starts one service, so that not all start at once."""

FOREIGN = (*SERVERS, "api", "flower")
"""The services that don't rotate their logs themselves."""

logger = logging.getLogger(__name__)


class Supervisor:
    """The active one of a stack's supervisors; name: its own."""

    def __init__(self, stack: Stack, name: str, guard: Guard) -> None:
        self._stack = stack
        self._name = name
        self._guard = guard
        self._restarts = stack.restarts  # of the one that was active before

    def look(self) -> bool:
        """End what is frozen, note what died (returns whether any had), and start the first whose pause is over."""
        before = dict(self._restarts)
        # First, so that what is killed here counts as dead in this look already.
        self._end_frozen()
        now = time.monotonic()
        running = {name: self._stack.find(name) is not None for name in self._stack.started()}
        for name, runs in running.items():
            self._see(name, now, runs=runs)
        due = [name for name, runs in running.items() if not runs and self._restarts[name].is_due(now)]
        if due:
            self._start(due[0])
        if self._restarts != before:
            self._save()
        self._start_wanted()
        return not all(running.values())

    def _start_wanted(self) -> None:
        try:
            for name in self._stack.start_wanted():
                logger.info("%s is started, as a step needs it", name)
        except (CotrailError, OSError) as error:
            logger.warning("a worker that a step needs can't be started: %s", error)

    def _end_frozen(self) -> None:
        others = [name for name in self._stack.started() if name != self._name]
        for name, reason in ended(self._guard, others).items():
            uptime, _ = self._stack.ending(name)
            restarts = self._restarts.get(name, Restarts())
            self._note(name, died(restarts, time.monotonic(), uptime=uptime, reason=reason))

    def _see(self, name: str, now: float, *, runs: bool) -> None:
        restarts = self._restarts.get(name, Restarts())
        if runs:
            self._restarts[name] = restarts.found_running()
        # Once for each death: from then on `due` is set, until it runs again.
        elif restarts.due is None:
            uptime, reason = self._stack.ending(name)
            self._note(name, died(restarts, now, uptime=uptime, reason=reason))

    def _start(self, name: str) -> None:
        """Start a service; a worker only where the servers answer, without which it is nothing."""
        try:
            may_start = name in (*SERVERS, *SUPERVISORS) or self._stack.servers_answer()
            if may_start and self._stack.start_again(name):
                self._restarts[name] = started(self._restarts[name])
                logger.info("%s is started again", name)
        except (CotrailError, OSError) as error:
            self._note(name, failed(self._restarts[name], time.monotonic(), str(error)))

    def _note(self, name: str, restarts: Restarts) -> None:
        self._restarts[name] = restarts
        logger.warning("%s is dead: %s; restart in %g s", name, restarts.reason or "no reason known", restarts.pause)

    def _save(self) -> None:
        try:
            self._stack.restarts = self._restarts
        except OSError as error:  # as on a full disk: only `cotrail stack` knows less then
            logger.warning("the restarts can't be written down: %s", error)


def wait_for(stack: Stack, names: Iterable[str], seconds: float) -> None:
    """Wait until one of these services dies, and no longer than so many seconds."""
    processes = map(stack.find, names)
    wait_for_an_end([process.pid for process in processes if process is not None], seconds)


def ended(guard: Guard, names: Iterable[str]) -> dict[str, str]:
    """Have the guard end what is frozen; returns why by name, and logs what can't be ended."""
    try:
        return guard.end_frozen(names)
    except (CotrailError, OSError) as error:
        logger.warning("what is frozen can't be ended: %s", error)
        return {}


def main() -> None:
    """Supervise until `cotrail down` ends this process, or until the home is gone."""
    (name,) = sys.argv[1:]
    keep_bounded()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    print_safely(*logging.getLogger().handlers)
    hide_in_logs(settings().secrets)
    stack = Stack(settings())
    guard, others = Guard(stack), [each for each in SUPERVISORS if each != name]

    def stand_by() -> None:
        announce(name)
        for other, reason in ended(guard, others).items():
            logger.warning("%s was active and is %s", other, reason)
        wait_for(stack, others, LOOK_SECONDS)

    with stack.supervision(stand_by):
        logger.info("%s is active", name)
        keep_others_bounded([stack.log(each) for each in FOREIGN])
        supervisor = Supervisor(stack, name, guard)
        while name in stack.started():
            announce(name)
            wait_for(stack, stack.started(), RESTART_LOOK_SECONDS if supervisor.look() else LOOK_SECONDS)


if __name__ == "__main__":
    main()
