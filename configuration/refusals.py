"""What is wrong with a setting, in the words of the person who wrote its variable."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from cotrail.common.printable_text import one_line, printable
from cotrail.common.server_addresses import shown_address
from cotrail.common.validation import shown
from cotrail.configuration.variables import PREFIX
from cotrail.errors import InputError

ADDRESSES = ("database_url", "broker_url", "search_url")
SECRETS = ("search_api_key",)

_WORDS = {
    "int_parsing": "it is no whole number",
    "int_from_float": "it is no whole number",
    "float_parsing": "it is no number",
    "float_type": "it is no number",
    "finite_number": "it is no finite number",
    "bool_parsing": "it is neither true nor false",
    "greater_than": "it has to be greater than {gt:g}",
    "greater_than_equal": "it has to be {ge:g} at least",
    "less_than_equal": "it has to be {le:g} at most",
    "string_pattern_mismatch": "it has to match {pattern}",
    "dict_type": "it isn't a JSON object",
}
"""Pydantic's kinds of errors, whose own words speak of inputs and parsing."""


def settings_refusal(error: ValidationError) -> str:
    """The message about the first setting that can't be used, with its value as far as that is no secret."""
    first = error.errors(include_input=False)[0]
    field, *parts = (str(part) for part in first["loc"])
    template = _WORDS.get(first["type"])
    words = template.format(**first.get("ctx", {})) if template else first["msg"].removeprefix("Value error, ")
    reason = ": ".join((*parts, words))
    variable = f"{PREFIX}{field.upper()}"
    return f"the environment variable {variable}{_given(field)} can't be used: {reason}; correct it or unset it"


def _given(field: str) -> str:
    """The variable's value in parentheses; empty where it is a secret."""
    if field in SECRETS:
        return ""
    variable = next((value for name, value in os.environ.items() if name.upper() == f"{PREFIX}{field.upper()}"), "")
    value = shown_address(variable.strip()) if field in ADDRESSES else variable
    return f" ({shown(value)})" if value else ""


@contextmanager
def refusing() -> Iterator[None]:
    """End the process with one line and the exit code 2 where its input can't be used; the command line has its own."""
    try:
        yield
    except InputError as error:
        print(f"cotrail: {one_line(printable(str(error)))}", file=sys.stderr)  # noqa: T201 - nothing is set up yet
        raise SystemExit(2) from None
