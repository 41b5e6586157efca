"""Turns of the models that compute in this process: a step each, whichever of them has most steps waiting."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from cotrail.models.records.dispatch import Dispatch
from cotrail.tasks.lease import Lease

NextInTurn = Callable[[str, Sequence[int], Sequence[str], int], list[Dispatch]]
"""Returns the steps that are next: see `cotrail.models.execution.turns.next_in_turn`."""


class Turns:
    """Claims steps for messages that only say that a step waits. For one thread.

    next_in_turn: which steps are next; claim: claims them, each unless another worker was faster.
    """

    def __init__(self, next_in_turn: NextInTurn, claim: Callable[[Sequence[Dispatch]], list[Lease | None]]) -> None:
        self._next_in_turn = next_in_turn
        self._claim = claim
        self._latest: dict[str, None] = {}

    def claim(self, messages: Sequence[Dispatch]) -> list[Lease | None]:
        """Claims a step for each message; None where none waits any more."""
        leases: dict[Dispatch, Lease] = {}
        for kind, group in groupby(sorted(messages, key=_kind), _kind):
            of_kind = list(group)
            leases |= dict(zip(of_kind, self._claimed(kind, of_kind), strict=False))
        return [leases.pop(message, None) for message in messages]

    def _claimed(self, kind: str, messages: Sequence[Dispatch]) -> Iterable[Lease]:
        """As many of the next steps as there are messages."""
        own, left = [message.step_id for message in messages], len(messages)
        while left and (chosen := self._next_in_turn(kind, own, list(self._latest), left)):
            for lease in self._claim(chosen):
                if lease is not None:
                    left -= 1
                    self._had_turn(lease)
                    yield lease

    def _had_turn(self, lease: Lease) -> None:
        if lease.claim.adopted is None:
            model = lease.claim.run.model_name
            self._latest.pop(model, None)
            self._latest[model] = None


def _kind(message: Dispatch) -> str:
    return message.kind
