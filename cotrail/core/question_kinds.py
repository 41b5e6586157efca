"""Kinds of questions, as their dataset names them: e.g. `{"type": "bridge", "level": "hard"}`."""

from collections.abc import Mapping
from typing import Literal

import msgspec

UNNAMED = "type"
"""The name of a kind that has none of its own."""

QuestionSort = Literal["multi-hop", "slot-filling", "fact-checking", "long-form"]
"""The tasks of Search-in-the-Chain (section 4.1): questions of several steps; objects of a subject's relation; claims
to be checked; questions that are answered at length."""


def named(**kinds: str) -> dict[str, str]:
    """The kinds that a question has; an empty one is left out."""
    return {name: kind for name, kind in kinds.items() if kind}


def recorded_kinds(kinds: Mapping[str, str]) -> str:
    """The kinds as a question's row holds them: a JSON object, or nothing where there are none."""
    return msgspec.json.encode(kinds).decode() if kinds else ""


def read_kinds(recorded: str) -> dict[str, str]:
    """The kinds of a question's row. Rows of earlier versions hold a single kind, without a name."""
    try:
        return msgspec.json.decode(recorded, type=dict[str, str])
    except msgspec.DecodeError:
        return named(**{UNNAMED: recorded})
