"""Language models on one GPU under IRCoT's prompts: cotrail's engines, the authors' way, and static batches.

`python -m benchmarks.gpu [--questions N] [--json] [--output FILE]`; `--shape tiny --device cpu` tries it without a GPU.
`benchmarks.generating` does the work, with models of random weights. Their sentences never end by themselves, so each
text ends after a length drawn beforehand; and their repetitions are random, which would make the measurement of
speculative decoding meaningless, so it is off. Everything below the packing of prompts is measured;
`benchmarks.end_to_end` includes queue, store and searches.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.machine import command, describe, versions
from cotrail.common.humanize import percent

errors = Console(stderr=True, soft_wrap=True)


def main(
    questions: Annotated[int, typer.Option(min=1, help="How many questions of five generations each.")] = 64,
    slots: Annotated[int, typer.Option(min=1, help="How many texts are written at once.")] = 32,
    sample: Annotated[int, typer.Option(min=1, help="How many prompts the authors' way is measured with.")] = 10,
    shape: Annotated[Literal["full", "tiny"], typer.Option(help="Models of 3 billion weights, or a try.")] = "full",
    device: Annotated[Literal["cuda", "cpu"], typer.Option(help="Where the models are.")] = "cuda",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure every model shape in every way, and print questions and tokens per second."""
    if not _is_there(device):
        errors.print(f"skipped: PyTorch has no {device} device here; --shape tiny --device cpu needs no GPU")
        return
    from benchmarks.generating import measure

    report = {
        "command": command("benchmarks.gpu"),
        "questions": questions,
        "slots": slots,
        "sample": sample,
        "device": device,
        "models": measure(shape, questions, slots, sample, device),
        "machine": describe(),
        "versions": versions("torch", "transformers"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(report) if not as_json else print(json.dumps(report))


def _is_there(device: str) -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return device == "cpu" or bool(torch.cuda.is_available())


def _print(report: dict[str, Any]) -> None:
    for name, measured in report["models"].items():
        title = f"{name}: {report['questions']} questions, prompts of {measured['prompt_tokens']} tokens on average"
        table = Table("", "questions a second", "tokens a second", "cotrail against it", "GiB", "busy", title=title)
        for way, each in measured["ways"].items():
            table.add_row(
                way if way != "authors" else f"authors (by {each['prompts']} prompts)",
                f"{each['questions_per_second']:.3f}",
                f"{each['written_tokens_per_second']:.0f}",
                f"{measured['ratios'][f'cotrail/{way}']:.2f} times",
                str(each["peak_gib"] or "-"),
                percent(each["busy"], 0),
            )
        Console().print(table)


if __name__ == "__main__":
    typer.run(main)
