"""JSON Schemas (2020-12), and whether a value follows one."""

import json
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from cotrail.common.printable_text import cut, one_line

LONGEST_REASON = 300
"""The most characters of a reason why a value doesn't follow."""


def check_schema(schema: str) -> None:
    """Raises ValueError where the text is no schema."""
    _validator(schema)


def mismatch(schema: str, value: Any) -> str:
    """Return why a value doesn't follow a schema; empty where it does."""
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
