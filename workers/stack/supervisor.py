"""The supervisor: `python -m workers.stack.supervisor NAME` starts again what `cotrail up` started and what has died.

Two of them run. One is active, and starts the other one again too; the other waits for a lock that the kernel releases
as soon as the active one has ended, in whatever way.
"""

import logging
import sys
import time

from configuration.settings import settings
from cotrail.common.log_formatting import print_safely
from cotrail.errors import CotrailError
from workers.health import keep_telling
from workers.logs import keep_bounded, keep_others_bounded
from workers.stack.process import wait_for_an_end
from workers.stack.restarts import Restarts, died, failed, started
from workers.stack.stack import Stack
from workers.stack.status import SERVERS, SUPERVISORS

LOOK_SECONDS = 1.0
"""The longest pause between two looks while nothing has died; a death ends it."""

RESTART_LOOK_SECONDS = 0.2
"""The pause between two looks while something is dead. Each starts one service, so that not all start at once."""

FOREIGN = (*SERVERS, "flower")
"""The services whose programs can't rotate their logs themselves."""

logger = logging.getLogger(__name__)


class Supervisor:
    """The active one of a stack's supervisors."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._restarts = stack.restarts  # of the one that was active before

    def look(self) -> bool:
        """Note what has died and start the first service whose pause is over; returns whether any was dead."""
        now, before = time.monotonic(), dict(self._restarts)
        found = {name: self._stack.find(name) is not None for name in self._stack.started()}
        for name, runs in found.items():
            self._see(name, now, runs=runs)
        due = [name for name, runs in found.items() if not runs and self._restarts[name].is_due(now)]
        if due:
            self._start(due[0])
        if self._restarts != before:
            self._save()
        return not all(found.values())

    def wait(self, seconds: float) -> None:
        """Wait until something dies, and no longer than so many seconds."""
        found = map(self._stack.find, self._stack.started())
        wait_for_an_end([process.pid for process in found if process is not None], seconds)

    def _see(self, name: str, now: float, *, runs: bool) -> None:
        restarts = self._restarts.get(name, Restarts())
        if runs:
            self._restarts[name] = restarts.found_running()
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


def main() -> None:
    """Supervise until `cotrail down` ends this process, or until the home is gone."""
    (name,) = sys.argv[1:]
    keep_bounded()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(message)s")
    print_safely(*logging.getLogger().handlers)
    stack = Stack(settings())
    keep_telling(name, lambda: None)
    with stack.supervision():
        logger.info("%s is active", name)
        keep_others_bounded([stack.log(each) for each in FOREIGN])
        supervisor = Supervisor(stack)
        while name in stack.started():
            supervisor.wait(RESTART_LOOK_SECONDS if supervisor.look() else LOOK_SECONDS)


if __name__ == "__main__":
    main()
