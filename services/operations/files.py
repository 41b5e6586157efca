"""Files that requests name: paths on the machine itself, digests of uploaded files over HTTP."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

Move = Callable[[str], str]
"""Gives the place of a file for another: the digest of a path that is uploaded, the path of a digest."""


@runtime_checkable
class NamesFiles(Protocol):
    """A request with files in it."""

    def with_files(self, move: Move) -> Any:
        """The same request with the files in the places that `move` gives."""
        ...


def moved(value: Any, move: Move) -> Any:
    """A parameter's value with the files that it names in other places: a path, paths, or a request that has some."""
    match value:
        case Path():
            return Path(move(str(value)))
        case NamesFiles():
            return value.with_files(move)
        case tuple() | list():
            return type(value)(moved(each, move) for each in value)
    return value
