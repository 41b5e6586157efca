"""Rubrics: what a judge is asked, and which verdicts it may give; and its verdict on an answer, or on two of them."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.common.structs import canonical
from cotrail.common.text_files import places
from cotrail.common.toml_files import read_toml
from cotrail.errors import InputError, UnknownNameError

Name = Annotated[str, Meta(min_length=1, max_length=60)]

BUILT_IN = ("correct", "browsecomp-plus", "frames", "simpleqa", "crag", "faithful", "preference")
"""The names of the rubrics that come with cotrail."""

RUBRICS: dict[str, "Rubric | None"] = dict.fromkeys(BUILT_IN)
"""Every rubric that has a name; extensions bring theirs, and cotrail's are read from files as they are needed."""

PREFERENCES = {"first": 1.0, "second": 0.0, "tie": 0.5}
"""The verdicts on two answers with the score of the first one."""

_PLACES_OF = {
    "answer": ("{question}", "{answers}", "{answer}", "{sentences}", "{paragraphs}"),
    "claims": ("{question}", "{paragraphs}", "{claim}"),
    "pair": ("{question}", "{answers}", "{first}", "{second}"),
}
PLACES = frozenset(place for places in _PLACES_OF.values() for place in places)
"""All places that words may have."""

_NEEDED = {"answer": ("{answer}",), "claims": ("{paragraphs}", "{claim}"), "pair": ("{first}", "{second}")}
_OF_CLAIMS = ("{question}", "{answer}", "{sentences}")


class Grade(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict, and what an answer scores by it."""

    name: Name
    """The verdict."""

    score: Annotated[float, Meta(ge=-1, le=1)]
    """What an answer scores by it: 1 for a right one."""


class Rubric(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a judge is asked about an answer; ValueError where it can't be followed."""

    name: Name
    """What it is called."""

    title: Name
    """What it is called in tables."""

    words: Annotated[str, Meta(min_length=1)]
    """The prompt's words, with places such as {question}, {answers} (the published ones) and {answer}."""

    verdicts: Annotated[tuple[Grade, ...], Meta(min_length=2, max_length=20)]
    """The verdicts that there are, each with its score."""

    asks: Literal["answer", "claims", "pair"] = "answer"
    """What is judged at once: an answer, each claim of an answer, or two answers, in both orders."""

    claims: str = ""
    """The words by which the claims of an answer are listed."""

    extracts: bool = False
    """Whether the judge first reads the final answer out of the response."""

    confidence: bool = False
    """Whether the judge says how sure it is of its verdict."""

    unanswered: str = ""
    """The verdict that a question counts by which a run never answered; by default that of the lowest score."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.verdicts]
        if len(set(names)) < len(names):
            raise ValueError("two of the verdicts have the same name")
        if 1 not in self.scores.values():
            raise ValueError("no verdict has the score 1, so that no answer could be right")
        if self.unanswered and self.unanswered not in self.scores:
            raise ValueError(f"`unanswered`: {unknown('verdict', self.unanswered, names)}")
        if self.asks == "pair" and self.scores != PREFERENCES:
            raise ValueError("the verdicts on two answers are first (score 1), second (0) and tie (0.5)")
        if (self.asks == "claims") != bool(self.claims):
            raise ValueError('`claims` has the words by which claims are listed, where `asks` is "claims" alone')
        if self.asks != "answer" and self.extracts:
            raise ValueError("a final answer is extracted where one answer is graded alone")
        if self.asks == "claims" and self.confidence:
            raise ValueError("verdicts on claims have no confidence")
        _check_places("words", self.words, _PLACES_OF[self.asks], _NEEDED[self.asks])
        if self.claims:
            _check_places("claims", self.claims, _OF_CLAIMS, ())

    @property
    def scores(self) -> dict[str, float]:
        """The score of each verdict."""
        return {each.name: each.score for each in self.verdicts}

    def shows(self, place: str) -> bool:
        """Return whether any of its prompts shows what replaces this place, such as `answers`."""
        return f"{{{place}}}" in (*places(self.words), *places(self.claims))


def _check_places(key: str, words: str, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    found = places(words)
    for place in found:
        if place not in known:
            raise ValueError(f"`{key}`: {unknown('place', place, known)}")
    for place in needed:
        if place not in found:
            raise ValueError(f"`{key}` lacks the place {place}")


@cache
def built_in(name: str) -> Rubric:
    """The rubric of that name that comes with cotrail."""
    file = files("cotrail.systems.judge") / "rubrics" / f"{name}.toml"
    return msgspec.toml.decode(file.read_bytes(), type=Rubric)


# Rubrics by what people name: a built-in one, or a file of their own.


def find_rubric(given: str) -> Rubric:
    """The rubric of that name, or the one in that TOML file; raises UnknownNameError, InputError."""
    if given in RUBRICS:
        return RUBRICS[given] or built_in(given)
    path = Path(given)
    if path.suffix == ".toml" or path.is_file():
        return _read(path)
    raise UnknownNameError(f"{unknown('rubric', given, RUBRICS)}; or name a TOML file of your own")


def _read(path: Path) -> Rubric:
    try:
        values: dict[str, Any] = read_toml(path, "the rubric")
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); check the path") from error
    try:
        rubric = msgspec.convert(values, Rubric)
    except msgspec.ValidationError as error:
        raise InputError(f"the rubric {path}: {refusal(error, Rubric, values)}; correct it") from error
    if rubric.name in RUBRICS and rubric != find_rubric(rubric.name):
        raise InputError(f"the rubric {path} isn't the one that is named {rubric.name!r}: give it a name of its own")
    return rubric


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
    """The JSON Schema of an answer by a rubric: the verdict follows from the reasoning, which stands before it."""
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
