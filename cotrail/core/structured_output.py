"""Structured output: a text that follows a JSON Schema, or is one of several words."""

import json
import math
import re
from functools import lru_cache
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from msgspec import Struct
from referencing import Registry
from referencing.exceptions import Unresolvable

from cotrail.common.printable_text import cut, one_line
from cotrail.common.storable_text import holds_nul

LONGEST_SCHEMA = 100_000
"""The most characters of a schema."""

LONGEST_TEXT = 200_000
"""The most characters of a text that is checked."""

LONGEST_NUMBER = 40
"""The most characters of a number in a reason."""

LONGEST_REASON = 300
"""The most characters of a reason why a text doesn't fit."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)
_AROUND = " \t\n\r.,;:!?\"'`*_()[]"


class Form(Struct, frozen=True, kw_only=True):
    """What a text is to be.

    schema: a JSON Schema (2020-12), as text, which refers to nothing outside of itself; choices: the words of which the
        text is one. Both empty for any text.
    """

    schema: str = ""
    choices: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises ValueError where the schema can't be used, or both are given."""
        if self.schema and self.choices:
            raise ValueError("a text follows a schema or is one of several words, and not both")
        if len(self.schema) > LONGEST_SCHEMA:
            raise ValueError(f"the schema is longer than {LONGEST_SCHEMA:,} characters")
        if self.schema:
            _validator(self.schema)

    def fit(self, text: str) -> tuple[str, str]:
        """The text in its form, and why it doesn't fit: one of the two is empty, both where there is no form.

        JSON may stand in a fence, and words around it are left out; a word may have another case and punctuation around
        it.
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
        reasons = []
        for candidate in _candidates(text):
            value, problem = _read(candidate)
            problem = problem or _mismatch(self.schema, value)
            if not problem:
                return msgspec.json.encode(value).decode(), ""
            reasons.append(problem)
        return "", reasons[0]


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


def _mismatch(schema: str, value: Any) -> str:
    try:
        error = best_match(_validator(schema).iter_errors(value))
    except (RecursionError, Unresolvable) as problem:
        return f"it can't be checked: {type(problem).__name__}"
    return "" if error is None else one_line(cut(_reason(error), LONGEST_REASON))


def _reason(error: ValidationError) -> str:
    where = f" (at {error.json_path})" if error.path else ""
    return f"{error.message}{where}"


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    """The validator of a schema; raises ValueError where it is none."""
    try:
        described = json.loads(schema)
        Draft202012Validator.check_schema(described)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the schema isn't JSON: {error}") from error
    except SchemaError as error:
        raise ValueError(f"the schema is none: {error.message}") from error
    # A registry without a way to retrieve anything: nothing is fetched.
    return Draft202012Validator(described, registry=Registry())
