"""The ways to answer the same questions that `benchmarks.end_to_end` compares, each in a process of its own."""

import os
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cotrail.services.runs.requests import make_request
from cotrail.services.runs.submission import PreparedRun, prepare

CORPUS = MODEL = "benchmark"


class Job(Struct, frozen=True, kw_only=True):
    """Work to measure: IRCoT over the first `count` questions of a file; context: the model's, in tokens.

    folder: holds cotrail's home and the measurements.
    sample: number of questions that the slowest way answers.
    """

    folder: Path
    corpus: tuple[Path, ...]
    dataset: str
    questions: Path
    demonstrations: Path | None
    count: int
    sample: int
    model: Path
    context: int

    @property
    def asked(self) -> Path:
        """The file of the prompts that cotrail sent."""
        return self.folder / "asked.jsonl"

    def prepared(self) -> PreparedRun:
        """The run, validated."""
        given = {
            "system": "ircot",
            "dataset": self.dataset,
            "questions": str(self.questions),
            "corpus": CORPUS,
            "limit": self.count,
            "model": MODEL,
        }
        shots = {} if self.demonstrations is None else {"demonstrations": str(self.demonstrations)}
        return prepare(make_request(given | shots))


def bar() -> Progress:
    """A progress bar with an estimate of the remaining time, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True))


def peak_mib(pid: int | None = None) -> int:
    """Peak resident memory of a process so far (by default this one), in MiB."""
    lines = Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kibibytes) // 1024
