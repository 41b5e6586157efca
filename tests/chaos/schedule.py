"""The schedule of faults: a list that depends only on a seed."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from random import Random
from typing import TypeVar

from msgspec import Struct

from tests.chaos.model import Mood

WORKERS = ("generation", "retrieval", "evidence", "maintenance")
SERVERS = ("redis", "postgres")
MODEL = "model"
SEARCH = "search"
SEARCHER = "retrieval"
PROCESSES = (*WORKERS, *SERVERS, MODEL, SEARCH)

Card = TypeVar("Card")


class Kind(StrEnum):
    """Kind of fault."""

    KILL = "kill"
    """`kill -9` of one process; of PostgreSQL's, the main process."""

    STOP = "stop"
    """SIGSTOP of a process and its children, SIGCONT later."""

    RESTART = "restart"
    """A process is asked to exit, and restarted later."""

    CUT = "power cut"
    """`kill -9` of everything at once, PostgreSQL's and Redis's processes included."""

    FLUSH = "flush"
    """Redis is emptied."""

    GARBAGE = "garbage"
    """Redis gets messages that aren't steps', or keys that aren't lists where queues should be."""

    DROP = "drop"
    """All connections to PostgreSQL are ended."""

    FILL = "fill"
    """The disk of the store has no room."""

    PARTITION = "partition"
    """No byte passes between a worker and a server, in one direction or both, and neither side is told."""

    PANIC = "panic"
    """A worker's execution raises something that is no `Exception`."""

    MOOD = "mood"
    """The model is slow, fails, or answers with garbage."""

    CLOCK = "clock"
    """A process's wall clock is wrong."""


ROUND = (*Kind, Kind.KILL, Kind.STOP)
"""One round: each kind, with repetitions of the frequent ones, before any is dealt again."""

LOST = ("postgres", "redis", "both", "to postgres", "from postgres")
"""The servers that a worker is cut off from, or one direction to or from a server."""

SEARCHES = [f"{SEARCHER} {lost}" for lost in (SEARCH, f"to {SEARCH}", f"from {SEARCH}")]
"""The partition between the retrieval worker and the search server."""

TARGETS: dict[Kind, Sequence[str]] = {
    Kind.KILL: PROCESSES,
    Kind.STOP: PROCESSES,
    Kind.RESTART: PROCESSES,
    Kind.CUT: ("everything",),
    Kind.FLUSH: ("redis",),
    Kind.GARBAGE: ("messages", "keys"),
    Kind.DROP: ("postgres",),
    Kind.FILL: ("tables", "log"),
    Kind.PARTITION: [*(f"{worker} {lost}" for worker in WORKERS for lost in LOST), *SEARCHES],
    Kind.PANIC: WORKERS[:-1],
    Kind.MOOD: [mood for mood in Mood if mood is not Mood.OK],
    Kind.CLOCK: WORKERS,
}

AFTER = (0.1, 3.0)
"""Range of the minimum seconds between the beginnings of two faults."""

AT_WORK = 0.5
"""The share of faults that wait until the stack works again; the others strike it in any state."""

LASTS = (0.2, 5.0)
"""Range of a fault's duration in seconds, which may exceed a lease."""

LONGER = {Kind.PARTITION: 6.0}
"""Factors for kinds that last longer: longer than a server keeps the session of a silent client."""

HOURS = 48.0
"""The most by which a clock is wrong, in hours, either way."""


class Fault(Struct, frozen=True, kw_only=True):
    """A fault and its victim.

    after: seconds since the fault before it began; lasts: how long until it is mended.
    at_work: whether it strikes only once a step has been finished since the fault before it.
    amount: of a clock, how many seconds it is ahead.
    """

    kind: Kind
    target: str
    after: float
    lasts: float
    at_work: bool = False
    amount: float = 0

    @property
    def of_search(self) -> bool:
        """Return whether it needs a search server."""
        return SEARCH in self.target.split()

    def __str__(self) -> str:
        amount = f" by {self.amount / 3600:+.1f} h" if self.amount else ""
        return f"{self.kind} {self.target}{amount} for {self.lasts:.1f} s"


def schedule(seed: int, count: int) -> list[Fault]:
    """The faults of a seed; with another count they begin in the same way."""
    random = Random(seed)
    kinds = _dealt(random, ROUND)
    targets = {kind: _dealt(random, names) for kind, names in TARGETS.items()}
    return [_fault(random, kind := next(kinds), next(targets[kind])) for _ in range(count)]


def _fault(random: Random, kind: Kind, target: str) -> Fault:
    after, lasts, hours = random.uniform(*AFTER), random.uniform(*LASTS), random.uniform(-HOURS, HOURS)
    return Fault(
        kind=kind,
        target=target,
        after=round(after, 2),
        lasts=round(lasts * LONGER.get(kind, 1.0), 2),
        at_work=random.random() < AT_WORK,
        amount=round(hours * 3600) if kind is Kind.CLOCK else 0,
    )


def _dealt(random: Random, cards: Sequence[Card]) -> Iterator[Card]:
    """All cards in random order, repeatedly."""
    while True:
        yield from random.sample(cards, len(cards))
