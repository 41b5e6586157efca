"""Scheduler: the thread in which a model runs, the runner's interface, and its slots of cached prefixes."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread
from typing import Protocol

from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers.kv_cache import RowCache
from cotrail.engines.language_models.transformers.request import Request
from cotrail.errors import CotrailError, TransientStepError


class ModelRunner(Protocol):
    """Continues several prompts at once; used by one thread only.

    It calls `Request.take` with each token, and `finish` or `fail` once when a request is done.
    """

    @property
    def batching_delay(self) -> float:
        """Seconds that an idle runner should wait for more requests after the first one (micro-batching)."""

    @property
    def busy(self) -> bool:
        """Return whether `step` has anything to do."""

    def room(self) -> int:
        """The number of requests that it can take now."""

    def admit(self, requests: list[Request]) -> None:
        """Takes requests, at most `room()`; all of them or, if it raises, none."""

    def step(self) -> None:
        """Reads a part of the prompts, writes a token of each text, or both."""

    def drop(self, request: Request) -> None:
        """Drops a request whose future is resolved already."""

    def cancel(self) -> None:
        """Drops all requests and leaves their futures alone."""


class Scheduler:
    """Has a runner work on requests in the order in which they arrive."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._waiting: deque[Request] = deque()
        self._admitted: list[Request] = []
        self._changed = Condition()
        self._interrupted = False
        Thread(target=self._work, name="transformers", daemon=True).start()

    def submit(self, request: Request) -> None:
        """Queues a request, whose future will be resolved. Raises Interrupted."""
        with self._changed:
            if self._interrupted:
                raise Interrupted
            self._waiting.append(request)
            self._changed.notify()

    def interrupt(self) -> None:
        """Makes every request fail with `Interrupted` after the current step; no further step is run."""
        with self._changed:
            self._interrupted = True
            self._changed.notify()

    def _work(self) -> None:
        while not self._interrupted:
            try:
                self._cut_off()
                self._admit(self._take())
                self._step()
            # Panics of the tokenizer's Rust code, for one, are no Exception.
            except BaseException as error:  # noqa: BLE001 - all callers wait for this thread, so it survives any error
                # Everything under way ends: the runner may have left it in an inconsistent state.
                self._runner.cancel()
                self._give_up(error)
        self._runner.cancel()
        self._give_up(Interrupted())
        # Without the lock: `submit` refuses requests by now.
        for request in self._waiting:
            request.fail(Interrupted())

    def _cut_off(self) -> None:
        with self._changed:
            waiting = [request for request in self._waiting if request.cancelled]
            for request in waiting:
                self._waiting.remove(request)
        admitted = [request for request in self._admitted if request.cancelled and not request.future.done()]
        _fail([*waiting, *admitted], Interrupted())
        for request in admitted:
            self._runner.drop(request)

    def _take(self) -> list[Request]:
        """The requests that the runner has room for; blocks while there is nothing else to do."""
        with self._changed:
            if not self._runner.busy:
                # Twice: until anything waits, and then a moment longer, so that what comes together is read together.
                self._changed.wait_for(lambda: self._interrupted or self._waiting)
                self._changed.wait_for(
                    lambda: self._interrupted or len(self._waiting) >= self._runner.room(), self._runner.batching_delay
                )
            count = 0 if self._interrupted else min(self._runner.room(), len(self._waiting))
            return [self._waiting.popleft() for _ in range(count)]

    def _admit(self, requests: list[Request]) -> None:
        if not requests:
            return
        try:
            for request in halving(self._runner.admit, requests):
                request.fail(no_room())
        except BaseException as error:  # noqa: BLE001 - other requests aren't affected
            _fail(requests, error)
        # The runner resolves futures itself; finished requests leave the list here.
        self._admitted = [request for request in [*self._admitted, *requests] if not request.future.done()]

    def _step(self) -> None:
        # Admitting may have taken long enough for an interruption, behind which no further step may run.
        if self._interrupted or not self._runner.busy:
            return
        self._runner.step()

    def _give_up(self, error: BaseException) -> None:
        _fail(self._admitted, error)
        self._admitted = []


def _fail(requests: list[Request], error: BaseException) -> None:
    reason = (
        error
        if isinstance(error, CotrailError | Interrupted)
        else TransientStepError(f"transformers gave up: {error!r}; the step is tried again")
    )
    for request in requests:
        if not request.future.done():
            request.fail(reason)


# Prefix cache over the rows of the KV cache: the row that a prompt is read into, and what needn't be read again.


class Slot:
    """A row of the cache.

    held: the tokens whose keys and values it holds, from the first on; shared: how many of them others share.
    request: the request that occupies the slot, None where it is free; turn: when it was last taken, counted in
        requests.
    leader: a slot that is reading a prefix that this slot's prompt shares, and that will be copied from it.
    """

    def __init__(self, row: int) -> None:
        self.row = row
        self.held: list[int] = []
        self.shared = 0
        self.request: Request | None = None
        self.turn = 0
        self.leader: Slot | None = None

    @property
    def taken(self) -> Request:
        """The request of a slot that isn't free."""
        if self.request is None:
            raise RuntimeError(f"slot {self.row} has no request")
        return self.request

    @property
    def promised(self) -> Sequence[int]:
        """The tokens that it holds, or will hold once its prompt is read."""
        return self.held if self.request is None else self.request.tokens

    @property
    def pending(self) -> list[int]:
        """The tokens to be read before the next one can be written: of the prompt, or the last one written."""
        beyond = len(self.held) - len(self.taken.tokens)
        return self.taken.written[beyond:] if beyond >= 0 else self.taken.tokens[beyond:]


class Slots:
    """The rows of a cache; grain: prefixes are reused in multiples of this many tokens."""

    def __init__(self, cache: RowCache, rows: int, grain: int) -> None:
        self._cache = cache
        self._grain = grain
        self._slots = [Slot(row) for row in range(rows)]
        self._turns = 0

    @property
    def busy(self) -> list[Slot]:
        """The occupied slots, in the order in which they were taken."""
        return sorted((slot for slot in self._slots if slot.request), key=lambda slot: slot.turn)

    @property
    def full(self) -> bool:
        """Return whether no slot is free."""
        return all(slot.request for slot in self._slots)

    def take(self, request: Request) -> Slot:
        """Gives a request a free slot, with as much of its prompt in it as any slot holds."""
        # The source may be occupied: what it has read is copied, and what it is about to read is waited for.
        source = max(self._slots, key=lambda slot: self._reusable(slot.promised, request))
        slot = source if self._is_extended_by(source, request) else self._least_recently_used()
        # Of another slot, which is overwritten, nothing counts: `follow` copies the prefix into it.
        kept = self._reusable(slot.held, request) if slot is source else 0
        self._turns += 1
        slot.request, slot.shared, slot.turn = request, request.shared, self._turns
        slot.held = request.tokens[:kept]
        slot.leader = source
        self.follow(slot)
        return slot

    def follow(self, slot: Slot) -> bool:
        """Copies from a slot's leader the prefix that it waits for; returns False while the leader hasn't read it."""
        leader, request = slot.leader, slot.taken
        if leader is None:
            return True
        coming = self._reusable(leader.promised, request)
        # A leader that has taken a later prompt by now may itself be waiting for this slot.
        if coming > len(leader.held) and leader.turn < slot.turn:
            return False
        kept = self._reusable(leader.held, request)
        if kept > len(slot.held):
            self._cache.copy(leader.row, slot.row, kept)
            slot.held = request.tokens[:kept]
        slot.leader = None
        request.cached = len(slot.held)
        return True

    def free(self, slot: Slot) -> None:
        """Frees a slot; of what it holds, whole grains of the prompt are kept."""
        del slot.held[len(slot.taken.tokens) // self._grain * self._grain :]
        slot.request = slot.leader = None

    def _reusable(self, held: Sequence[int], request: Request) -> int:
        """The number of tokens that needn't be read: whole grains, never the last token, which the next one needs."""
        return min(common(held, request.tokens), len(request.tokens) - 1) // self._grain * self._grain

    def _is_extended_by(self, slot: Slot, request: Request) -> bool:
        """Return whether a slot is free and most of what it holds beyond the demonstrations is a prefix of the prompt.

        That is the case for a question's next step, which has more paragraphs than the last.
        """
        more = self._reusable(slot.held, request) - request.shared
        return slot.request is None and 2 * more >= len(slot.held) - request.shared

    def _least_recently_used(self) -> Slot:
        """The least recently used free slot, preferably one whose demonstrations another slot holds too."""
        free = sorted((slot for slot in self._slots if slot.request is None), key=lambda slot: slot.turn)
        return next((slot for slot in free if not self._is_last(slot)), free[0])

    def _is_last(self, slot: Slot) -> bool:
        others = (other for other in self._slots if other is not slot)
        shared = slot.held[: slot.shared]
        return all(common(other.promised, shared) < len(shared) for other in others)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    shorter = min(len(one), len(other))
    # Binary search: comparing slices is done in C, so that a few long comparisons beat a loop over tokens.
    return bisect_left(range(1, shorter + 1), x=True, key=lambda count: one[:count] != other[:count])


DETERMINISTIC_CHUNK_TOKENS = 128
"""Tokens of a chunk. On average, half a chunk of a shared prefix is read again."""

DETERMINISTIC_SPARE_ROWS = 3
"""Rows of the cache other than the active one: they keep the demonstrations of chains and of answers, and more."""
