"""Structured output: a text that follows a JSON Schema, or is one of several words."""

import json
import math
import re
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import cut, holds_nul, one_line

LONGEST_SCHEMA = 100_000
"""The most characters of a schema."""

LONGEST_TEXT = 200_000
"""The most characters of a text that is checked."""

MOST_OBJECTS = 50
"""How many objects are looked for in a text of which one property alone matters."""

LONGEST_NUMBER = 40
"""The most characters of a number in a reason."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)
_AROUND = " \t\n\r.,;:!?\"'`*_()[]"


class Form(Struct, frozen=True, kw_only=True):
    """What a text is to be.

    schema: a JSON Schema (2020-12), as text, which refers to nothing outside of itself; choices: the words of which the
        text is one. Both empty for any text.
    decides: the property of the schema, one of several words, that alone matters, if any: a text that says it counts
        without others that don't follow.
    """

    schema: str = ""
    choices: tuple[str, ...] = ()
    decides: str = ""

    def check(self) -> None:
        """Raises ValueError where the schema can't be used, or both are given."""
        if self.schema and self.choices:
            raise ValueError("a text follows a schema or is one of several words, and not both")
        if len(self.schema) > LONGEST_SCHEMA:
            raise ValueError(f"the schema is longer than {LONGEST_SCHEMA:,} characters")
        if self.schema:
            from cotrail.core.json_schemas import check_schema  # as it loads slowly, and few requests have a schema

            check_schema(self.schema)

    def fit(self, text: str) -> tuple[str, str]:
        """The text in its form, and why it doesn't fit: one of the two is empty, both where there is no form.

        JSON may stand in a fence, and words around it are left out; a word may have another case and punctuation around
        it. Where a property decides, the others are left out that don't follow the schema or aren't in it; and a text
        that says the property in two ways says nothing.
        """
        if self.choices:
            return self._chosen(text)
        return self._followed(text) if self.schema else (text, "")

    def _chosen(self, text: str) -> tuple[str, str]:
        said = text.strip(_AROUND).casefold()
        chosen = [each for each in self.choices if each.strip(_AROUND).casefold() == said]
        if len(chosen) == 1:
            return chosen[0], ""
        return "", f"it has to be one of these words, and nothing else: {', '.join(self.choices)}"

    def _followed(self, text: str) -> tuple[str, str]:
        if len(text) > LONGEST_TEXT:
            return "", f"it has more than {LONGEST_TEXT:,} characters"
        from cotrail.core.json_schemas import mismatch

        said = _Decided.by(self.schema, self.decides, text) if self.decides else None
        if said and said.problem:
            return "", said.problem
        reasons = []
        for candidate in _candidates(text):
            value, problem = _read(candidate)
            problem = problem or mismatch(self.schema, value)
            if not problem:
                return msgspec.json.encode(value).decode(), ""
            reasons.append(problem)
        return ("", reasons[0]) if said is None or said.kept is None else (said.kept, "")


class _Decided(Struct, frozen=True):
    """What a text says of the property that decides: the JSON that is kept, or that it says it in two ways."""

    kept: str | None = None
    problem: str = ""

    @classmethod
    def by(cls, schema: str, decides: str, text: str) -> "_Decided | None":
        """None where the schema has no such property, or its value isn't one of several words."""
        properties: dict[str, Any] = json.loads(schema).get("properties", {})
        words = properties.get(decides, {}).get("enum", [])
        if not words or not all(isinstance(word, str) for word in words):
            return None
        objects = [pairs for pairs in _objects(text) if any(_is(key, decides) for key, _ in pairs)]
        said = [_word(value, words) for pairs in objects for key, value in pairs if _is(key, decides)]
        if len(set(said)) > 1:
            return cls(problem=f"it says {decides!r} in {len(set(said))} ways that contradict each other")
        if not said or said[0] is None or text.casefold().count(f'"{decides}"') != len(said):
            return cls()  # what stands outside of all that can be read may say it otherwise
        kept = _following(objects[-1], properties) | {decides: said[0]}
        return cls(kept=msgspec.json.encode({key: kept[key] for key in properties if key in kept}).decode())


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object of JSON, a key as often as it stands there."""


def _objects(text: str) -> list[_Pairs]:
    """The outermost objects of JSON in a text, whatever stands around them, as far as they can be read."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=lambda _: None)
    found, place = list[_Pairs](), text.find("{")
    for _ in range(MOST_OBJECTS):
        if place < 0:
            break
        try:
            pairs, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(pairs)
        place = text.find("{", end)
    return found


def _is(key: str, name: str) -> bool:
    return key.strip().casefold() == name.casefold()


def _word(value: Any, words: list[str]) -> str | None:
    """The one of these words that a value is, whatever its case and the punctuation around it."""
    said = value.strip(_AROUND).casefold() if isinstance(value, str) else None
    return next((word for word in words if word.strip(_AROUND).casefold() == said), None)


def _following(pairs: _Pairs, properties: dict[str, Any]) -> dict[str, Any]:
    from cotrail.core.json_schemas import mismatch

    kept = {}
    for key, value in pairs:
        try:
            follows = key in properties and not mismatch(json.dumps(properties[key]), value)
            if follows and not holds_nul(msgspec.json.encode(value)):
                kept[key] = value
        except (ValueError, ArithmeticError, RecursionError):
            continue
    return kept


def _candidates(text: str) -> list[str]:
    """Where the JSON may stand: in all of the text, in its last fence, or between its outermost brackets."""
    fenced = [match[1] for match in _FENCED.finditer(text)]
    starts = [place for place in map(text.find, "{[") if place >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    within = [text[min(starts) : end + 1]] if starts and end > min(starts) else []
    return list(dict.fromkeys([text.strip(), *fenced[-1:], *within]))


def _read(text: str) -> tuple[Any, str]:
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        encoded = msgspec.json.encode(value)
    except (ValueError, RecursionError) as error:
        return None, f"it isn't JSON: {one_line(str(error))}"
    if holds_nul(encoded):
        return None, "it holds a NUL character (\\u0000), which can't be stored"
    return value, ""


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{cut(number, LONGEST_NUMBER)} is too large a number")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
