"""The authors' way: one question at a time, no prefix cache, and 200 generated tokens of which one sentence is kept.

System, packing, search, engine and model are cotrail's; its queue, store, cache and stop criteria are left out. The
released code can also be configured to stop at a line's end, so the time up to there is recorded too.
"""

import random
from collections.abc import Mapping
from threading import Event
from time import perf_counter
from typing import Any

from msgspec import Struct, convert

from benchmarks.actions import prompted
from benchmarks.ways import CORPUS, Job, bar, peak_mib
from cotrail.common.sentence_boundaries import first_sentence
from cotrail.configuration.settings import settings
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Retrieve, retrieved
from cotrail.core.generation import Sampling
from cotrail.core.history import Failed, Finished, Recorded
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.core.replay import advance
from cotrail.core.results import Result
from cotrail.core.system import Action
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream, Server
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.result import generated
from cotrail.engines.retrieval.stores import open_index
from cotrail.services.runs.submission import PreparedRun
from cotrail.systems.registry import find_system

SEED = 1
"""Seed of the sample of questions."""

MAX_TOKENS = 200
"""Tokens that the authors' code generates, for a sentence and for an answer alike."""

AFRESH: dict[str, Any] = {"cache_prompt": False, "cache_ram_mib": 0}
"""Options of a server that processes every prompt from its first token."""


class WholeStream(LlamaCppStream):
    """Takes everything that the model writes, and records when its first line was complete."""

    def __init__(self) -> None:
        super().__init__("end", Event().is_set)
        self.line_at: float | None = None

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """See `Stream`."""
        enough = super().take(chunk)
        if self.line_at is None and "\n" in self.text:
            self.line_at = perf_counter()
        return enough


class Tally:
    """Total cost of the generations."""

    def __init__(self) -> None:
        self.generations = self.prompt_tokens = self.generated_tokens = 0
        self.behind_lines = 0.0
        """Seconds between the end of the first line and the end of the generation."""

    def count(self, stream: WholeStream) -> None:
        """Add a generation that has just ended."""
        self.generations += 1
        self.prompt_tokens += stream.timings.prompt_n
        self.generated_tokens += stream.timings.predicted_n
        self.behind_lines += perf_counter() - stream.line_at if stream.line_at else 0.0


class SerialExecutor(Struct, frozen=True):
    """Executes the system's actions one after another."""

    server: Server
    context: int
    retriever: Corpus
    tally: Tally

    def result(self, action: Action) -> Result:
        """The result of an action."""
        if isinstance(action, Retrieve):
            return retrieved(self.retriever, action)
        generation = prompted(action)
        packed = pack(generation.prompt, lambda text: len(self.server.tokens(text)), self.context, MAX_TOKENS)
        stream = WholeStream()
        self.server.complete(packed.render(), stream, MAX_TOKENS, Sampling())
        self.tally.count(stream)
        line = stream.text.partition("\n")[0]
        text = first_sentence(line) if isinstance(action, Reason) else line.strip()
        return generated(packed, text, stream.text, stream.timings.counts)


def measure(job: Job) -> dict[str, Any]:
    """Answer a sample of the questions, one after another."""
    prepared = job.prepared()
    sample = random.Random(SEED).sample(prepared.questions, min(job.sample, len(prepared.questions)))
    server = Server(job.model, 1, job.context, AFRESH)
    world = SerialExecutor(server, job.context, open_index(settings().corpora_path / CORPUS), Tally())
    with bar() as shown:
        task = shown.add_task("the authors' way", total=len(sample))
        started, steps = perf_counter(), 0
        for question in sample:
            steps += _answer(world, prepared, question)
            shown.advance(task)
        seconds = perf_counter() - started
    tally = world.tally
    return {
        "seconds": round(seconds, 2),
        "seconds_with_a_stop_at_lines": round(seconds - tally.behind_lines, 2),
        "questions": len(sample),
        "steps": steps,
        "generations": tally.generations,
        "prompt_tokens": tally.prompt_tokens,
        "generated_tokens": tally.generated_tokens,
        "peak_mib": peak_mib(),
    }


def _answer(world: SerialExecutor, prepared: PreparedRun, question: Question) -> int:
    """Run the system to its answer; returns the number of its steps."""
    history: list[Recorded] = []
    submission = prepared.submission
    spec = find_system(submission.system)
    configured: Any = convert(submission.settings, spec.settings)
    while True:
        match advance(lambda: spec.open(question, submission.shots, configured), history, submission.binding):
            case Finished():
                return len(history)
            case Failed(failure):
                raise RuntimeError(f"the question {question.id} fails: {failure.type}, {failure.message}")
            case following:
                for step in following.steps:
                    outcome = world.result(step.action)
                    recorded = Recorded(kind=kind_of(step.action).name, fingerprint=step.fingerprint, outcome=outcome)
                    history.append(recorded)
