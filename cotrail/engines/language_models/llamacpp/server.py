"""llama.cpp's server, which runs in this process."""

import http.client
import json
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cotrail.core.generation import Sampling
from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.language_models.llamacpp.stream import LlamaCppStream
from cotrail.engines.optional_packages import not_installed
from cotrail.errors import InputError, TransientStepError

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
            **self._sampling(sampling),
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

    def _sampling(self, sampling: Sampling) -> dict[str, Any]:
        # By default llama.cpp also applies top-k, min-p and others, which change the distribution. The order is that of
        # transformers and of OpenAI's servers.
        fields: dict[str, Any] = {"samplers": ["temperature"], "temperature": sampling.temperature}
        if sampling.repetition_penalty != 1.0:
            fields["samplers"].insert(0, "penalties")
            # The whole prompt and text count, not the last 64 tokens.
            fields |= {"repeat_penalty": sampling.repetition_penalty, "repeat_last_n": self._context}
        if sampling.top_k:
            fields["samplers"].append("top_k")
            fields["top_k"] = sampling.top_k
        if sampling.top_p != 1.0:
            fields["samplers"].append("top_p")
            fields["top_p"] = sampling.top_p
        return fields | {"seed": sampling.seed}

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
    for name, value in options.items():
        setattr(params, name, value)
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise InputError(f"llama.cpp can't load {path}: {error}") from error
