"""Model calls that take a little time and are noted in a file, by the process that makes them.

Where BENCHMARK_MODEL_CALLS names a file, each call of `benchmarks.workload`'s model adds a line to it as it begins and
another as it ends. Lines are appended at once, so that `kill -9` of the process loses none. Otherwise calls cost
nothing.
"""

import os
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

VARIABLE = "BENCHMARK_MODEL_CALLS"

SECONDS = "BENCHMARK_MODEL_CALL_SECONDS"
"""What a noted call takes, all of it waiting, like one of a server."""

BEGUN, ENDED = "begun", "ended"

_file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if (name := os.environ.get(VARIABLE)) else None
_seconds = float(os.environ.get(SECONDS, "0"))


def call(question: str, position: int) -> None:
    """Call the model for what is at this position of a question's chain."""
    if _file is not None:
        _note(_file, BEGUN, question, position)
        time.sleep(_seconds)
        _note(_file, ENDED, question, position)


def _note(file: int, what: str, question: str, position: int) -> None:
    os.write(file, f"{what}\t{position}\t{question}\n".encode())


class Repeated(Struct, frozen=True):
    """Calls that were made again; all: how many; answered: those among them whose answer had come before."""

    all: int
    answered: int


def begun(notes: bytes) -> int:
    """How many calls began."""
    return notes.count(f"{BEGUN}\t".encode())


def repeated(notes: bytes, ends: Sequence[int]) -> list[Repeated]:
    """By the part of the notes in which a call was made, which calls of it were made again after that.

    ends: the bytes at the end of each part; what follows is the last part.
    """
    parts = [[*map(_read, part.splitlines())] for part in _parts(notes, ends)]
    made = [Counter(call for what, call in part if what == BEGUN) for part in parts]
    answered = [Counter(call for what, call in part if what == ENDED) for part in parts]
    later = [Counter[str]() for _ in parts]
    for number in range(len(parts) - 2, -1, -1):
        later[number] = later[number + 1] + made[number + 1]
    return [_repeated(*each) for each in zip(made, answered, later, strict=True)]


def _repeated(made: Counter[str], answered: Counter[str], later: Counter[str]) -> Repeated:
    """All but the last time that a call was made were in vain: of those here, all if it was made again later."""
    vain = {each: times - (0 if later[each] else 1) for each, times in made.items()}
    return Repeated(sum(vain.values()), sum(min(times, answered[each]) for each, times in vain.items()))


def _parts(notes: bytes, ends: Sequence[int]) -> list[str]:
    bounds = [0, *ends, len(notes)]
    return [notes[first:last].decode() for first, last in pairwise(bounds)]


def _read(line: str) -> tuple[str, str]:
    what, _, call = line.partition("\t")
    return what, call
