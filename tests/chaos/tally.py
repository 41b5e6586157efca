"""What came of the requests of those who ask the service."""

from collections import Counter, defaultdict

from msgspec import Struct, field


class Tally(Struct):
    """What came of all cases.

    operations, carried_out: how often each operation was asked, and how often it did what was asked.
    statuses: answers by status for each asker; lost: connections; accepted: the names of runs that were submitted.
    wrong: how often each thing was wrong, and wrong_first: the first case of it.
    """

    cases: int = 0
    statuses: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    operations: Counter[str] = field(default_factory=Counter)
    carried_out: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    accepted: dict[str, str] = {}
    wrong: Counter[str] = field(default_factory=Counter)
    wrong_first: dict[str, str] = {}

    @property
    def answers(self) -> int:
        """How many answers there were."""
        return sum(each.total() for each in tuple(self.statuses.values()))

    def note(self, what: str, case: str) -> None:
        """Note something wrong."""
        self.wrong[what] += 1
        self.wrong_first.setdefault(what, case)
