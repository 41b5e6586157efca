"""The words of a system's prompts: files of the package, which a run may replace by its own."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from cotrail.common.placeholders import split
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Piece

Filling = str | Piece | Iterable[str | Piece]
"""What is put in a place: a text or a piece, or several."""


@cache
def own_words(system: str) -> Mapping[str, str]:
    """The words of a system's prompts by name: the files `NAME.txt` of its folder in `cotrail/systems/words`.

    Recorded runs replay by the words of the version that they pin: who changes these files counts the version up.
    """
    folder = files("cotrail.systems") / "words" / system
    texts = {each.name: each.read_text("utf-8") for each in folder.iterdir() if each.name.endswith(".txt")}
    return MappingProxyType({name.removesuffix(".txt"): texts[name].strip("\n") for name in sorted(texts)})


def chosen_words(shots: Shots, own: Mapping[str, str], name: str) -> str:
    """The words of the prompt of that name: those that the run brings, or else the system's own."""
    brought = {each.id: each.question for each in shots[AnswerForm.PROMPT].items} if AnswerForm.PROMPT in shots else {}
    return brought.get(name, own[name])


def filled(words: str, **values: Filling) -> tuple[str | Piece, ...]:
    """The words with these values in the places of their names; places without a value stay as they stand.

    What a value holds is never looked at, so that a question may have brackets of its own.
    """
    return tuple(piece for part in split(words) for piece in _filled(part, values) if piece != "")


def _filled(part: str, values: Mapping[str, Filling]) -> Iterable[str | Piece]:
    name = part[1:-1]
    if part != f"{{{name}}}" or name not in values:
        return (part,)
    value = values[name]
    return (value,) if isinstance(value, str | Piece) else value


def worded(shots: Shots, own: Mapping[str, str], name: str, **values: Filling) -> tuple[str | Piece, ...]:
    """The pieces of the prompt of that name; see `chosen_words` and `filled`."""
    return filled(chosen_words(shots, own, name), **values)
