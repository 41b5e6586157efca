"""A value that was given, as an error message shows it."""

import re

import msgspec

from cotrail.common.printable_text import cut
from cotrail.common.storable_text import storable

LONGEST_VALUE = 80
"""Maximum characters shown of a value."""

_CREDENTIALS = re.compile(r"://[^/\s\"]*@")


def shown(value: object) -> str:
    """The value as JSON on one line, cut where it is long, without the credentials in addresses."""
    if isinstance(value, float):
        return repr(value)  # JSON has neither infinity nor NaN
    if isinstance(value, str):
        value = storable(value[: 2 * LONGEST_VALUE])
    json = msgspec.json.encode(value, enc_hook=str).decode()
    return cut(_CREDENTIALS.sub("://[secret]@", json), LONGEST_VALUE)
