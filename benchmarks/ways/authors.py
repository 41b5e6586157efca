"""The authors' way: one question at a time, every prompt read afresh, 200 tokens written of which a sentence is kept.

The system, the packing, the search, the engine and the model are cotrail's own; its queue, store, cache and stops are
not there. The released code can also be told to end at a line's end, so the time up to there is noted besides.
"""

import random
from collections.abc import Mapping
from threading import Event
from time import perf_counter
from typing import Any

from msgspec import Struct, convert

from benchmarks.ways import CORPUS, Job, bar, peak_mib
from configuration.settings import settings
from cotrail.common.sentences import first_sentence
from cotrail.core.actions.kind import Action
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.actions.registry import kind
from cotrail.core.actions.retrieve import Retrieve, retrieved
from cotrail.core.generation import Sampling
from cotrail.core.questions import Question
from cotrail.core.replay import Failed, Finished, Recorded, advance
from cotrail.core.results import Result
from cotrail.engines.language_models.llamacpp.server import Server
from cotrail.engines.language_models.llamacpp.stream import Stream
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.result import generated
from cotrail.engines.retrieval.tantivy import TantivyRetriever, open_corpus
from cotrail.systems import find_system
from services.prepared_run import PreparedRun

SEED = 1
"""What the sample of the questions is drawn with."""

MAX_TOKENS = 200
"""What the authors' code has a model write, for a sentence and for an answer alike."""

AFRESH: dict[str, Any] = {"cache_prompt": False, "cache_ram_mib": 0}
"""A server that reads every prompt from its first token."""


class WholeStream(Stream):
    """Takes all that the model writes, and notes when its first line was whole."""

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
    """What the generations took together."""

    def __init__(self) -> None:
        self.generations = self.prompt_tokens = self.generated_tokens = 0
        self.behind_lines = 0.0
        """Seconds between a first line's end and the generation's."""

    def count(self, stream: WholeStream) -> None:
        """Adds a generation that has just ended."""
        self.generations += 1
        self.prompt_tokens += stream.timings.prompt_n
        self.generated_tokens += stream.timings.predicted_n
        self.behind_lines += perf_counter() - stream.line_at if stream.line_at else 0.0


class World(Struct, frozen=True):
    """What carries out the system's actions."""

    server: Server
    context: int
    retriever: TantivyRetriever
    tally: Tally

    def result(self, action: Action) -> Result:
        """How the action ends."""
        if isinstance(action, Retrieve):
            return retrieved(self.retriever, action)
        assert isinstance(action, Reason | Read)
        packed = pack(action.prompt, lambda text: len(self.server.tokens(text)), self.context, MAX_TOKENS)
        stream = WholeStream()
        self.server.complete(packed.render(), stream, MAX_TOKENS, Sampling())
        self.tally.count(stream)
        line = stream.text.partition("\n")[0]
        text = first_sentence(line) if isinstance(action, Reason) else line.strip()
        return generated(packed, text, stream.text, stream.timings.tokens)


def measure(job: Job) -> dict[str, Any]:
    """Answers a sample of the questions, one after another."""
    prepared = job.prepared()
    sample = random.Random(SEED).sample(prepared.questions, min(job.sample, len(prepared.questions)))
    server = Server(job.model, 1, job.context, AFRESH)
    world = World(server, job.context, open_corpus(settings().corpora_path, CORPUS), Tally())
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


def _answer(world: World, prepared: PreparedRun, question: Question) -> int:
    """Carries the system through; returns the number of its steps."""
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
                    recorded = Recorded(kind=kind(step.action), fingerprint=step.fingerprint, outcome=outcome)
                    history.append(recorded)
