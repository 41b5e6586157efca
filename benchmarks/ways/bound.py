"""The upper bound: the same engine continues the prompts that cotrail sent, all known in advance."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from statistics import fmean
from threading import Event
from time import perf_counter
from typing import Any

from benchmarks.recorded_prompts import RecordedPrompt, load_prompts
from benchmarks.ways import Job, bar, peak_mib
from cotrail.configuration.settings import settings
from cotrail.core.generation import Sampling
from cotrail.engines.language_models.llamacpp.model import fast_server
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream, Server


def measure(job: Job) -> dict[str, Any]:
    """Continue the prompts of as many questions at once as the worker has slots, each question's in their order."""
    asked, slots = load_prompts(job.asked), settings().generation_slots
    questions = [list(each) for _, each in groupby(asked, key=lambda each: each.question)]
    server = fast_server(job.model, slots, job.context)
    with bar() as shown, ThreadPoolExecutor(slots) as pool:
        task = shown.add_task("the bound", total=len(asked))

        def work(question: list[RecordedPrompt]) -> list[LlamaCppStream]:
            return [_continued(server, each, lambda: shown.advance(task)) for each in question]

        started = perf_counter()
        streams = [stream for done in pool.map(work, questions) for stream in done]
        seconds = perf_counter() - started
    sent = sum(each.timings.cache_n + each.timings.prompt_n for each in streams)
    return {
        "seconds": round(seconds, 2),
        "questions": len(questions),
        "generations": len(asked),
        "share_from_cache": round(sum(each.timings.cache_n for each in streams) / sent, 4),
        "same_texts": round(fmean(s.text == a.written.raw for s, a in zip(streams, asked, strict=True)), 4),
        "sentences": _sentences(server, [each for each in asked if each.until == "sentence"]),
        "peak_mib": peak_mib(),
    }


def _continued(server: Server, asked: RecordedPrompt, done: Callable[[], None]) -> LlamaCppStream:
    stream = LlamaCppStream(asked.until, Event().is_set)
    server.complete(asked.prompt.render(), stream, asked.max_tokens, Sampling())
    done()
    return stream


def _sentences(server: Server, asked: list[RecordedPrompt]) -> dict[str, Any]:
    """Statistics of the tokens written beyond the sentences that were kept."""
    own = [len(server.tokens(_kept(each))) for each in asked]
    beyond = [each.written.generated_tokens - tokens for each, tokens in zip(asked, own, strict=True)]
    cut = [each.written.generated_tokens == each.max_tokens for each in asked]
    whole = [tokens for tokens, is_cut in zip(beyond, cut, strict=True) if not is_cut]
    return {
        "sentences": len(asked),
        "mean_tokens": round(fmean(own), 2),
        "mean_beyond": round(fmean(beyond), 2),
        "at_the_token_limit": sum(cut),
        "mean_beyond_of_the_others": round(fmean(whole), 2) if whole else None,
    }


def _kept(asked: RecordedPrompt) -> str:
    """The model's output up to the end of the sentence."""
    raw, text = asked.written.raw, asked.written.text
    return raw[: raw.index(text) + len(text)]
