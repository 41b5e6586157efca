"""The profile `deterministic`: prefix caching that changes no bit of the output.

llama.cpp reads a prompt in batches. The keys and values of a token depend, to the last bit, on the tokens before it and
on the boundaries of the batches. Here every prompt is cut in the same way, into batches of `BATCH_TOKENS` from its
first token on. The whole batches that two prompts share then come out the same for both, whatever was read before or in
between, so that they may be kept. Nothing else is kept: not the rest of a batch, and not what the model wrote.
"""

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import IO, Any

from msgspec import Struct

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream, Server, TokenIds

BATCH_TOKENS = 128
"""Tokens of a batch. On average, half a batch of a shared prefix is read again. On two cores, batches of 512 are read
about a tenth faster and batches of 32 a third slower."""

SAVED_STATES = 8
"""The most prefixes saved: three sets of demonstrations, each for chains and for answers, and more."""

WATCH_SECONDS = 0.25
"""Polling interval of a prompt that waits for its turn and may be cancelled."""

OPTIONS: dict[str, Any] = {
    "n_batch": BATCH_TOKENS,
    "n_ubatch": BATCH_TOKENS,
    "cache_ram_mib": 0,
    "n_ctx_checkpoints": 0,  # a checkpoint moves the boundaries of the last batches
    "swa_full": True,  # models with sliding windows otherwise drop what the next prompt would continue from
}
"""Options that the server needs for this profile."""


class DeterministicSlot:
    """The only slot of a server, which works on one prompt at a time.

    It continues from the last prompt or from a saved state, whichever shares more. States are saved for the prefixes
    that prompts are expected to share, their demonstrations. They are kept in unnamed files in the folder for temporary
    files, so that nothing is left behind however the process ends; 2,000 tokens of SmolLM2 take 46 MB.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._turn = Lock()
        self._read: TokenIds = []
        self._saved: list[_State] = []  # least recently used first
        self._can_forget = True
        # The list is changed in place only, so that this closes whatever is saved by then.
        weakref.finalize(self, _close, self._saved)

    def complete(
        self, tokens: TokenIds, shared: int, stream: LlamaCppStream, max_tokens: int, sampling: Sampling
    ) -> None:
        """Continues a prompt; other prompts are expected to share about its first `shared` tokens.

        Raises Interrupted, StepError, TransientStepError.
        """
        with self._taking_turns(stream):
            kept = self._recall(tokens)
            self._hold(tokens, kept, stream)
            self._server.complete(tokens, stream, max_tokens, sampling)
            self._read = tokens
            # The server has read tokens that it held: the model can't drop only the end of a prompt.
            if stream.timings.cache_n < kept:
                self._can_forget = False
            self._remember(tokens, min(shared, len(tokens) - 1) // BATCH_TOKENS * BATCH_TOKENS, stream)

    @contextmanager
    def _taking_turns(self, stream: LlamaCppStream) -> Iterator[None]:
        # A lock can't be awaited together with a cancellation, so the latter is polled.
        while not self._turn.acquire(timeout=WATCH_SECONDS):
            if stream.interrupted():
                raise Interrupted
        try:
            yield
        finally:
            self._turn.release()

    def _recall(self, tokens: TokenIds) -> int:
        """Restores the saved state that shares more than the slot does; returns how many tokens needn't be read.

        That is 0 with models that can't drop only the end of a prompt, such as recurrent ones: they read everything
        again.
        """
        if not self._can_forget:
            return 0
        state = max(self._saved, key=lambda each: _whole_batches(each.tokens, tokens), default=None)
        if state and _whole_batches(state.tokens, tokens) > _whole_batches(self._read, tokens):
            # A state holds one token more than counts: the one that `_hold` put behind the prefix.
            if self._server.restore(state.file.fileno()) == len(state.tokens) + 1:
                self._read = state.tokens
                self._saved.append(self._saved.pop(self._saved.index(state)))
            else:
                self._read = []
                self._drop(state)
        return _whole_batches(self._read, tokens)

    def _hold(self, tokens: TokenIds, count: int, stream: LlamaCppStream) -> None:
        """Makes the slot hold the first `count` tokens, whole batches, and one token behind them that doesn't follow.

        llama.cpp reuses the longest common prefix of the slot's tokens and the next prompt: now exactly these.
        """
        # Any token that isn't the prompt's next one ends the common prefix here.
        other = 0 if tokens[count] else 1
        # Unknown until this has ended: where it is interrupted, the slot may hold any part of the prompt.
        self._read = []
        self._server.complete([*tokens[:count], other], LlamaCppStream("line", stream.interrupted), 0, Sampling())
        self._read = tokens[:count]

    def _remember(self, tokens: TokenIds, count: int, stream: LlamaCppStream) -> None:
        """Saves the slot's state after the first `count` tokens, whole batches, unless a saved state reaches as far.

        If there is no room for it, the tokens will be read again.
        """
        if not self._can_forget or count <= max((_whole_batches(s.tokens, tokens) for s in self._saved), default=0):
            return
        self._hold(tokens, count, stream)
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as the state is kept
        if self._server.save(file.fileno()) != count + 1:
            file.close()
            return
        # Every prompt that a state of fewer tokens would serve is served by the longer one as well.
        for state in [state for state in self._saved if state.tokens == tokens[: len(state.tokens)]]:
            self._drop(state)
        self._saved.append(_State(tokens[:count], file))
        if len(self._saved) > SAVED_STATES:
            self._drop(self._saved[0])

    def _drop(self, state: "_State") -> None:
        self._saved.remove(state)
        state.file.close()


class _State(Struct, frozen=True):
    """A saved state of a slot, which holds these tokens and one more."""

    tokens: TokenIds
    file: IO[bytes]


def _whole_batches(read: TokenIds, tokens: TokenIds) -> int:
    """The number of tokens that needn't be read after `read` was: whole batches, and never the last token."""
    ends = range(BATCH_TOKENS, len(tokens), BATCH_TOKENS)
    return max((end for end in ends if read[:end] == tokens[:end]), default=0)


def _close(states: list[_State]) -> None:
    for state in states:
        state.file.close()
