"""The form in which judges answer: JSON whose keys a rubric decides."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.canonical_json import canonical
from cotrail.systems.judge.rubric import Rubric

CLAIMS = canonical(
    {
        "type": "object",
        "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
        "required": ["claims"],
        "additionalProperties": False,
    }
).decode()
"""The JSON Schema of a list of claims."""

CLAIMS_IN_WORDS = 'Answer with one JSON object and nothing else, such as {"claims": ["...", "..."]}.'


class Said(Struct, frozen=True, kw_only=True):
    """What a judge answered."""

    verdict: str
    reasoning: str = ""
    extracted: str = ""
    confidence: float | None = None
    cited: tuple[float, ...] = ()


class _Claims(Struct, frozen=True):
    claims: tuple[str, ...]


def verdict_schema(rubric: Rubric) -> str:
    """The JSON Schema of an answer by a rubric.

    The reasoning stands before the verdict, so that the verdict follows from it.
    """
    properties = {key: of for key, (of, _) in _keys(rubric).items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    # In this order, which decides the order in which models that are held to a schema write.
    return msgspec.json.encode(schema).decode()


def in_words(rubric: Rubric) -> str:
    """The same in words, for the prompt."""
    keys = "\n".join(f'"{key}": {meaning}' for key, (_, meaning) in _keys(rubric).items())
    return f"Answer with one JSON object and nothing else. Its keys, in this order:\n{keys}"


def said_in(text: str) -> Said:
    """What a judge answered, by its text."""
    return msgspec.json.decode(text, type=Said)


def claims_in(text: str) -> tuple[str, ...]:
    """The claims that a text lists, each once."""
    listed = (each.strip() for each in msgspec.json.decode(text, type=_Claims).claims)
    return tuple(dict.fromkeys(each for each in listed if each))


_Key = tuple[Mapping[str, Any], str]


def _keys(rubric: Rubric) -> dict[str, _Key]:
    """The keys in their order, each with its schema and what it means."""
    text: Mapping[str, Any] = {"type": "string"}
    names = list(rubric.scores)
    quoted = ", ".join(f'"{name}"' for name in names)
    extracted: dict[str, _Key] = {"extracted": (text, "the final answer that the response gives")}
    cited: dict[str, _Key] = {
        "cited": ({"type": "array", "items": {"type": "integer"}}, "the numbers of the paragraphs that you cite")
    }
    confidence: dict[str, _Key] = {
        "confidence": (
            {"type": "integer", "minimum": 0, "maximum": 100},
            "how sure you are of your verdict, from 0 to 100",
        )
    }
    return {
        **(extracted if rubric.extracts else {}),
        "reasoning": (text, "why, in a few sentences"),
        **(cited if rubric.asks == "claims" else {}),
        "verdict": ({"type": "string", "enum": names}, f"one of {quoted}"),
        **(confidence if rubric.confidence else {}),
    }
