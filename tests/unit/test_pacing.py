"""Pacing of many steps against an account that holds its limits, in simulated time: what is used, and what refused."""

import heapq
import random
from collections.abc import Callable, Generator
from itertools import count
from typing import Any

from benchmarks.limited_account import Account, Answer, Headers, Script, Seen
from cotrail.core.ports.rate_limiter import Need
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.pacing import Pacing, pause_asked
from cotrail.engines.rate_limits import ProcessLimiter
from cotrail.errors import BusyError
from tests.cases import each_case

STEPS, WARM_UP, SECONDS = 320, 15.0, 60.0
SWEEP_SECONDS = 1.0
LATE_SECONDS = 0.003
"""How much later than asked for a step goes on in the mean."""

ESTIMATE = 1.3
"""How many times too high prompts are estimated."""

REQUESTS, INPUT, OUTPUT = 1200, 378_000, 136_000
ENDPOINT = Endpoint(url="http://localhost/v1", model="m", context=4096, account="acme")

Waits = Generator[float, None, None]


class World:
    """Carries out steps that yield for how long they wait."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.chance = random.Random(7)
        self._order = count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._order), work))

    def go_on(self, step: Waits) -> None:
        for seconds in step:
            late = self.chance.expovariate(1 / LATE_SECONDS)
            self.at(self.now + seconds + late, lambda: self.go_on(step))
            return

    def until(self, when: float) -> None:
        while self._due[0][0] <= when:
            self.now, _, work = heapq.heappop(self._due)
            work()


def asking(world: World, account: Account, pacing: Pacing) -> Waits:
    """One step after another; one that is given back comes again with a sweep."""
    while True:
        read = 9 * world.chance.randint(10, 60)
        need = Need(input_tokens=ESTIMATE * read, output_tokens=account.script.most)
        while True:
            try:
                reserved = yield from pacing.turn(need)
            except BusyError as error:
                due = world.now + (error.seconds or 0)
                yield due - world.now + SWEEP_SECONDS - due % SWEEP_SECONDS
                continue
            sent, answer = world.now, account.ask(read, account.script.most)
            if isinstance(answer, Answer):
                break
            pacing.learn(answer, sent, world.now)
            pacing.refused(pause_asked(answer))
        yield answer.seconds
        account.end(answer)
        pacing.learn(answer.headers, sent, world.now)
        pacing.settle(need, reserved, Need(input_tokens=read, output_tokens=answer.written))


def measured(script: Script, processes: int, change: float = 1.0) -> tuple[float, float]:
    """The share of the limit that is used most, and the share of requests that is refused."""
    world = World()
    account = Account(script, lambda: world.now)
    limiter = ProcessLimiter(lambda: world.now)
    pacings = [Pacing(ENDPOINT, limiter) for _ in range(processes)]
    for number in range(STEPS):
        world.go_on(asking(world, account, pacings[number % processes]))
    world.until(world.now + WARM_UP)
    account.seen = Seen()
    world.until(world.now + SECONDS / 2)
    account.change(change)
    world.until(world.now + SECONDS / 2)
    used = account.seen.shares(script.limits, SECONDS * (1 + change) / 2)
    return max(used.values()), account.seen.refused_share


@each_case("processes", [1, 4, 16])
@each_case("change", [1.0, 2.0, 0.5], ids=["steady", "doubled", "halved"])
@each_case(
    "script",
    [
        {"limits": {"requests": REQUESTS}, "headers": "openai"},
        {"limits": {"requests": REQUESTS}, "headers": "openai", "counts_refused": True},
        {"limits": {"input_tokens": INPUT}, "headers": "anthropic"},
        {"limits": {"output_tokens": OUTPUT}, "headers": "anthropic"},
        {"limits": {"requests": REQUESTS, "input_tokens": INPUT, "output_tokens": OUTPUT}, "headers": "anthropic"},
    ],
    ids=["requests", "refused ones count", "input", "output", "all three"],
)
def test_nearly_all_that_a_provider_allows_is_used_and_hardly_a_request_refused(
    script: dict[str, Any], change: float, processes: int
) -> None:
    used, refused = measured(Script(**script), processes, change)
    assert used >= 0.95
    assert refused < 0.01


def test_texts_much_shorter_than_they_may_be_leave_no_part_of_the_limit_unused() -> None:
    used, refused = measured(
        Script(limits={"output_tokens": OUTPUT}, headers="anthropic", most=2048, written=(60, 1.0), full=60), 4
    )
    assert used >= 0.95
    assert refused < 0.01


@each_case("headers", ["retry-after", "none"])
def test_limits_that_nobody_tells_are_found_out(headers: Headers) -> None:
    used, refused = measured(Script(limits={"requests": REQUESTS}, headers=headers), 4)
    assert used >= 0.95
    assert refused < 0.01
