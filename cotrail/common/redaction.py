"""Passwords and keys, kept out of whatever is written or printed.

Servers and proxies say in their errors what they were sent, as it was or in one of the forms that it has on the way.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

INSTEAD = "[secret]"


class Secrets:
    """Some secrets; empty ones are none."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first: one may be a part of another.
        longest = sorted(forms, key=lambda form: (-len(form), form))
        self._forms = re.compile("|".join(map(re.escape, longest))) if longest else None

    def hidden(self, text: str) -> str:
        """The text with something else in the place of each."""
        return self._forms.sub(INSTEAD, text) if self._forms else text

    def __bool__(self) -> bool:
        return self._forms is not None


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for encoded in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield encoded
        yield re.sub("%..", lambda escape: escape[0].lower(), encoded)
    yield html.escape(secret)
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield b64encode(secret.encode()).decode()
