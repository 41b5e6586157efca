"""The measurements of `benchmarks.gpu`: the same prompts, continued in several ways."""

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from shutil import which
from statistics import mean
from time import perf_counter
from typing import Any

import torch
from rich.console import Console

from benchmarks.shapes import SHAPES, MadeUpPrompt, ModelShape
from cotrail.core.generation import Sampling
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers.causal import CausalRunner
from cotrail.engines.language_models.transformers.request import Request
from cotrail.engines.language_models.transformers.scheduler import ModelRunner, Scheduler
from cotrail.engines.language_models.transformers.seq2seq import Seq2SeqRunner

AUTHORS_TOKENS = 200
"""Tokens that the authors' server writes after each prompt."""

SEED = 1
"""Seed of the sample of prompts for the authors' way."""

SAMPLING_MS = 200
"""Interval between samples of the GPU's utilization."""

errors = Console(stderr=True)


class Wordless:
    """Stands in for a vocabulary: tokens without text, none of which ends a text."""

    ends: frozenset[int] = frozenset()
    text = ""

    def written(self) -> "Wordless":
        """See `Vocabulary`."""
        return self

    def take(self, token: int) -> str:
        """See `Written`."""
        return ""


class Measured(Request):
    """A request without speculative decoding, whose text has the drawn length."""

    def __init__(self, asked: MadeUpPrompt) -> None:
        super().__init__(asked.tokens, Wordless(), "sentence", asked.length, Sampling())  # type: ignore[arg-type]

    def draft(self) -> list[int]:
        """See `Request`."""
        return []


class Busy:
    """Context manager that samples the GPU's utilization; share: its mean, None where nvidia-smi doesn't report it."""

    def __init__(self) -> None:
        self.share: float | None = None

    def __enter__(self) -> "Busy":
        command = which("nvidia-smi")
        asked = [command or "", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"-lms={SAMPLING_MS}"]
        self._process = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) if command else None
        return self

    def __exit__(self, *unused: object) -> None:
        if self._process is not None:
            self._process.terminate()
            said, _ = self._process.communicate()
            samples = [int(line) for line in said.splitlines() if line.strip().isdigit()]
            self.share = round(mean(samples) / 100, 3) if samples else None


def measure(shape: str, questions: int, slots: int, sample: int, device: str) -> dict[str, Any]:
    """Measure every model of a group of shapes in every way, over the prompts of `questions` questions.

    sample: prompts for the authors' way, which is too slow for all of them.
    """
    return {name: _measure(name, each, questions, slots, sample, device) for name, each in SHAPES[shape].items()}


def _measure(name: str, shape: ModelShape, questions: int, slots: int, sample: int, device: str) -> dict[str, Any]:
    """Measure every way in turn, over the same prompts."""
    model = shape.model(device)
    chains = shape.questions(questions)
    prompts = [asked for chain in chains for asked in chain]
    some = Random(SEED).sample(prompts, min(sample, len(prompts)))
    # cotrail comes last, because its engine sets how the model attends.
    ways: dict[str, Callable[[], int]] = {
        "authors": lambda: _generate(model, some, 1, AUTHORS_TOKENS),
        "batches": lambda: _generate(model, sorted(prompts, key=lambda asked: asked.length), slots, None),
        "cotrail": lambda: _cotrail(model, shape, chains, slots),
    }
    _generate(model, some[:1], 1, 4)  # what is only done once, as choosing kernels, isn't measured
    measured = {}
    for way, work in ways.items():
        errors.print(f"{name}: {way}", style="dim")
        measured[way] = _timed(work, len(some) if way == "authors" else len(prompts), len(chains[0]))
    fastest = measured["cotrail"]["questions_per_second"]
    ratios = {f"cotrail/{way}": round(fastest / each["questions_per_second"], 2) for way, each in measured.items()}
    return {"prompt_tokens": round(mean(len(asked.tokens) for asked in prompts)), "ways": measured, "ratios": ratios}


def _timed(work: Callable[[], int], prompts: int, prompts_a_question: int) -> dict[str, Any]:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with Busy() as busy:
        begun = perf_counter()
        written = work()
        seconds = perf_counter() - begun
    return {
        "prompts": prompts,
        "seconds": round(seconds, 2),
        "questions_per_second": round(prompts / prompts_a_question / seconds, 4),
        "written_tokens_per_second": round(written / seconds, 1),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None,
        "busy": busy.share,
    }


def _cotrail(model: Any, shape: ModelShape, chains: Sequence[Sequence[MadeUpPrompt]], slots: int) -> int:
    """All questions at once, each of whose steps follows on the one before; how many tokens were written."""
    kind: Callable[..., ModelRunner] = Seq2SeqRunner if shape.config.is_encoder_decoder else CausalRunner
    scheduler = Scheduler(kind(model, "fast", slots, shape.context))
    with ThreadPoolExecutor(max_workers=2 * slots) as threads:
        written = sum(threads.map(lambda chain: _follow(scheduler, chain), chains))
    scheduler.interrupt()
    return written


def _follow(scheduler: Scheduler, chain: Sequence[MadeUpPrompt]) -> int:
    written = 0
    for asked in chain:
        request = Measured(asked)
        scheduler.submit(request)
        request.future.result()
        written += len(request.written)
    return written


def _generate(model: Any, prompts: Sequence[MadeUpPrompt], batch: int, tokens: int | None) -> int:
    """So many prompts at a time, or fewer where memory doesn't suffice; how many tokens were asked for.

    tokens: how many are written behind each prompt; None writes as many as the longest text of a batch takes.
    """

    def write(group: list[MadeUpPrompt]) -> None:
        length = tokens or max(asked.length for asked in group)
        model.generate(
            **_padded(model, group), max_new_tokens=length, min_new_tokens=length, do_sample=False, pad_token_id=0
        )

    for start in range(0, len(prompts), batch):
        if halving(write, [*prompts[start : start + batch]]):
            raise no_room()
    return sum(tokens or asked.length for asked in prompts)


def _padded(model: Any, group: Sequence[MadeUpPrompt]) -> dict[str, torch.Tensor]:
    """Pad on the side where nothing is written: left for decoders, right for encoders."""
    width = max(len(asked.tokens) for asked in group)
    padded, seen = [], []
    for asked in group:
        empty = [0] * (width - len(asked.tokens))
        ones = [1] * len(asked.tokens)
        encoder = model.config.is_encoder_decoder
        padded.append([*asked.tokens, *empty] if encoder else [*empty, *asked.tokens])
        seen.append([*ones, *empty] if encoder else [*empty, *ones])
    ids, mask = torch.tensor([padded, seen], device=model.device)
    return {"input_ids": ids, "attention_mask": mask}
