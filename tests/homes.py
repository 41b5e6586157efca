"""Homes of stacks: folders with short paths, as sockets have short names, and what the commands in them read."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCRIPTED = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
"""A list of models whose only one is in `script.json`."""


@contextmanager
def home_of(files: Mapping[str, object]) -> Iterator[Path]:
    """A home with these files, removed at the end: texts as they are, tables as JSON, lists as a line of JSON each."""
    with tempfile.TemporaryDirectory(prefix="ch-") as folder:
        for name, content in files.items():
            Path(folder, name).write_text(_text(content))
        yield Path(folder)


def answering(answer: str) -> dict[str, Any]:
    """The script of a model that answers every question alike."""
    return {"name": "writer", "questions": {}, "default": {"answer": answer}}


def asked_often(questions: Sequence[Mapping[str, Any]], rounds: int) -> list[dict[str, Any]]:
    """The questions so many times over, each under a key of its own."""
    return [{**each, "id": f"{each['id']}-{number}"} for number in range(rounds) for each in questions]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(f"{json.dumps(line)}\n" for line in content) if isinstance(content, list) else json.dumps(content)
