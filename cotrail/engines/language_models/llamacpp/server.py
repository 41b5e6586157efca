"""llama.cpp's server, which runs in this process."""

import http.client
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cotrail.common.optional_packages import not_installed
from cotrail.common.printable_text import storable
from cotrail.common.processes import host_cores, usable_cores
from cotrail.core.generation import Ended, Sampling, Until
from cotrail.core.ports.cancellation import Interrupted, Listener
from cotrail.engines.language_models.grammars import FREE, Grammars, Guide
from cotrail.engines.language_models.served.request import llama_cpp_sampling
from cotrail.engines.language_models.stop_conditions import GrowingText, kept, stop_condition, why_ended
from cotrail.engines.language_models.token_counts import LlamaCppTimings, TokenCounts
from cotrail.engines.language_models.worker_thoughts import ThinkingText
from cotrail.errors import InputError, StepError, TransientStepError

BAD_REQUEST = 400


class LlamaCppStream:
    """Takes the server's chunks until the generation is complete.

    until, stop, scored: see `GenerationRequest`; interrupted: returns whether the generation was cancelled.
    max_tokens: the most tokens of the text, None where the request bounds them.
    written: tells thoughts from text; shown: control tokens that the server is to write as text, for it to do so.
    grammars: what the text is held to; listener: see `Cancellation`.
    scores: the text and the log probability of each token; a character of several tokens is one with the last's.
    raw: all that was written, thoughts and marks too.
    """

    def __init__(
        self,
        until: Until,
        interrupted: Callable[[], bool],
        stop: tuple[str, ...] = (),
        *,
        scored: bool = False,
        max_tokens: int | None = None,
        written: ThinkingText | None = None,
        shown: Sequence[str] = (),
        grammars: Grammars = FREE,
        listener: Listener | None = None,
    ) -> None:
        self.until = until
        self.stop = stop
        self.scored = scored
        self.written = written or ThinkingText()
        self.raw = GrowingText()
        self.scores: list[tuple[str, float]] = []
        self.timings = LlamaCppTimings()
        self.finished = False
        self._max_tokens = max_tokens
        self._shown = list(shown)
        self._listener = listener
        self._guide = Guide(grammars, self.written)
        self._turns = False
        self._counted: TokenCounts | None = None
        self._error: Mapping[str, Any] = {}
        self.interrupted = interrupted
        self._enough = stop_condition(until, stop)
        self._reason: str | None = None

    @property
    def asks(self) -> dict[str, Any]:
        """The fields of a request that it decides."""
        # The probabilities are the model's own, before the samplers.
        scores = {"n_probs": 1} if self.scored else {}
        grammar = {"grammar": self._guide.grammar} if self._guide.grammar else {}
        return scores | grammar | ({"preserved_tokens": self._shown} if self._shown else {})

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """The server's callback; True ends the generation, or the part of it up to where it `pauses`."""
        # xllamacpp passes errors as chunks too.
        if "choices" not in chunk:
            self._error = chunk.get("error", chunk)
            return True
        choice = chunk["choices"][0]
        piece = storable(choice["text"])
        self.raw.add(piece)
        self._reason = choice["finish_reason"]
        text = self.written.take(piece, self._new_tokens(chunk.get("timings", {})))
        if self._reason is None and self._max_tokens is not None and self.written.text_tokens >= self._max_tokens:
            self._reason = "length"
        if self._reason is not None:
            text += self.written.end(cut=self._reason == "length")
        if text and self.scored:
            self.scores.append((text, sum(each["logprob"] for each in choice["logprobs"]["content"])))
        self.finished = self._enough(text) or self._reason is not None
        self._turns = self._guide.follow()
        if self._listener:
            self._listener(self.kept() if self.finished else self.text, self.written.thoughts)
        # True ends the request in the server, which otherwise writes on for a caller that has left.
        return self.finished or self.pauses or self.interrupted()

    def _new_tokens(self, timings: Mapping[str, int]) -> int:
        """Takes the counts of a chunk; returns how many tokens it has."""
        before = self.timings.predicted_n
        self.timings = LlamaCppTimings(**{field: timings.get(field, 0) for field in LlamaCppTimings.__struct_fields__})
        return max(0, self.timings.predicted_n - before)

    @property
    def text(self) -> str:
        return self.written.text

    @property
    def pauses(self) -> bool:
        """Return whether the rest is a request of its own: a thought takes too long, or another grammar holds."""
        return not self.finished and (self.written.is_overdue or self._turns)

    @property
    def counts(self) -> TokenCounts:
        """The token counts of the whole generation; what the engine wrote in the model's place isn't in them."""
        counts, before = self.timings.counts, self._counted
        if before:
            counts = replace(before, generated_tokens=before.generated_tokens + counts.generated_tokens)
        return replace(counts, thought_tokens=self.written.thought_tokens)

    def go_on(self) -> None:
        """Prepares for the rest behind a pause, closing a thought that takes too long in the model's place."""
        if self.written.is_overdue:
            self.raw.add(self.written.close())
            self._guide.follow()
        self._turns = False
        self._counted, self.timings = self.counts, LlamaCppTimings()

    def give_up(self) -> None:
        """Ends the generation of a model that thinks however often its thought is closed."""
        self.written.end(cut=True)
        self._reason, self.finished = "length", True

    def check(self) -> None:
        """Raises why a generation didn't complete; xllamacpp itself raises nothing, not even what `take` raises."""
        if self.finished:
            return
        if self.interrupted():
            raise Interrupted
        if self.pauses:
            return
        message = f"llama.cpp gave up: {self._error.get('message', 'no reason known')}"
        raise StepError(message) if self._error.get("code") == BAD_REQUEST else TransientStepError(message)

    def kept(self) -> str:
        return kept(self.text, self.until, self.stop)

    @property
    def ending(self) -> tuple[Ended, str]:
        """Why the text ended, and before which stop string."""
        # llama.cpp says `stop` where the model ended the text.
        otherwise: Ended = "length" if self._reason == "length" else "end"
        return why_ended(self.text, self.until, self.stop, otherwise)


TokenIds = list[int]

DESCRIPTORS = "/proc/self/fd/"
"""Folder in which the kernel shows this process's open files; it lets the server write into unnamed files."""


class Server:
    """A loaded model and its slots; each slot works on one prompt at a time and keeps what it read.

    context: tokens of a slot; options: further fields of llama.cpp's `common_params`.
    """

    def __init__(self, path: Path, slots: int, context: int, options: dict[str, Any]) -> None:
        self._context = context
        self._api_key = secrets.token_hex(16)
        self._server = _load(
            path,
            options
            | {
                "n_parallel": slots,
                "n_ctx": context * slots,  # llama.cpp divides it among the slots
                "slot_save_path": DESCRIPTORS,
                "api_keys": [self._api_key],  # the loopback address it listens on is open to all users of the machine
                "verbosity": -1,
            },
        )
        self._address = urlsplit(self._server.listening_address).netloc

    def complete(self, prompt: str | TokenIds, stream: LlamaCppStream, max_tokens: int, sampling: Sampling) -> None:
        """Continues a prompt in any slot, which reuses the longest prefix that it read before.

        Raises Interrupted, StepError, TransientStepError.
        """
        if stream.interrupted():
            raise Interrupted
        request = {
            "prompt": prompt,
            "n_predict": max_tokens,
            **llama_cpp_sampling(sampling, self._context),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "stream": True,
            # Chunks while the prompt is read, so that the callback can interrupt there too.
            "return_progress": True,
            # A generation that is cut off has then reported its token counts.
            "timings_per_token": True,
            **stream.asks,
        }
        self._server.handle_completions(request, stream.take)
        stream.check()

    def tokens(self, content: str | list[str | int], *, begins: bool = True, has_controls: bool = False) -> TokenIds:
        """The tokens of a text, or of parts that are texts or tokens already. Raises TransientStepError.

        begins: whether it gets the tokens that the model expects at the beginning.
        has_controls: whether what reads like a control token is one, and not words that only look like it.
        """
        request = {"content": content, "add_special": begins, "parse_special": has_controls}
        try:
            # Over HTTP, because xllamacpp has no function for it.
            tokens: TokenIds = self._post("/tokenize", request)["tokens"]
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            raise TransientStepError(f"llama.cpp didn't count the tokens of a prompt: {error!r}") from error
        return tokens

    def save(self, descriptor: int) -> int:
        """Writes the first slot's state into an open file; returns its number of tokens, 0 on failure."""
        return self._move("save", descriptor, "n_saved")

    def restore(self, descriptor: int) -> int:
        """Restores the first slot's state from an open file, bit for bit; returns its tokens' number, 0 on failure."""
        return self._move("restore", descriptor, "n_restored")

    # Failing to save or restore costs time only, as the tokens can be read again.
    def _move(self, action: str, descriptor: int, count: str) -> int:
        try:
            return int(self._post(f"/slots/0?action={action}", {"filename": str(descriptor)}).get(count, 0))
        except (OSError, http.client.HTTPException, ValueError):
            return 0

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._api_key}"}
            connection.request("POST", path, json.dumps(body), headers)
            answer: dict[str, Any] = json.load(connection.getresponse())
            return answer
        finally:
            connection.close()


def _load(path: Path, options: dict[str, Any]) -> Any:
    # By default llama.cpp's threads wait for each other by spinning for about a millisecond. If another process needs
    # the same cores, a token then takes twenty times as long. Most waits are shorter than this number of spins.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        import xllamacpp
    except ImportError as error:
        raise not_installed("xllamacpp", "local") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    if (cores := usable_cores()) < host_cores():  # of which llama.cpp takes all otherwise
        params.cpuparams.n_threads = cores
    for name, value in options.items():
        setattr(params, name, value)
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise InputError(f"llama.cpp can't load {path}: {error}") from error
