"""A judge's verdict on an answer, or on two of them, with what it rests on."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.structs import canonical
from cotrail.systems.judge.rubric import Rubric


class ClaimVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on one claim of an answer; cited: the numbers of the paragraphs that it rests on, from 1."""

    claim: str
    verdict: str
    cited: tuple[int, ...] = ()


class Judgement(Struct, frozen=True, kw_only=True):
    """What a judge said; the details of its run's answers.

    rubric: its name. verdict: one of the rubric's; score: the verdict's by the rubric. Of claims, verdict and score are
        those on all of them together: see `cotrail.systems.judge.system`.
    confidence: the judge's own in its verdict, 0 to 1; None where the rubric doesn't ask for it.
    reasoning: why, in the judge's words; thoughts before its text are in its steps.
    extracted: the final answer that it read in the response, where the rubric asks for it.
    claims: of a rubric that goes claim by claim.
    consistent: of a preference, whether both orders led to it; None for other rubrics.
    dropped: what the rubric asks for next to the verdict, and the judge gave in no usable form; left out where
        all can be.
    """

    rubric: str
    verdict: str
    score: float
    confidence: float | None = None
    reasoning: str = ""
    extracted: str = ""
    claims: tuple[ClaimVerdict, ...] = ()
    consistent: bool | None = None
    dropped: tuple[str, ...] | UnsetType = UNSET


# The form in which judges answer: JSON whose keys a rubric decides.

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


class JudgedText(Struct, frozen=True, kw_only=True):
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
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    # In this order, which decides the order in which models that are held to a schema write.
    return msgspec.json.encode(schema).decode()


def in_words(rubric: Rubric) -> str:
    """The same in words, for the prompt."""
    keys = "\n".join(f'"{key}": {meaning}' for key, (_, meaning) in _keys(rubric).items())
    return f"Answer with one JSON object and nothing else. Its keys, in this order:\n{keys}"


def judged_text_in(text: str) -> JudgedText:
    """What a judge answered, by its text."""
    return msgspec.json.decode(text, type=JudgedText)


def dropped(rubric: Rubric, texts: Iterable[str]) -> tuple[str, ...] | UnsetType:
    """The keys other than the verdict that a text lacks, as they could not be used; UNSET where none does."""
    read = [msgspec.json.decode(text, type=dict[str, Any]) for text in texts]
    lacking = tuple(key for key in _keys(rubric) if any(key not in said for said in read))
    return lacking or UNSET


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
