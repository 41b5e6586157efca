"""Redaction of passwords and keys in everything that is written or printed.

Servers and proxies quote in their errors what they were sent, literally or in the encoding of some layer in between.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

REPLACEMENT = "[secret]"
_ESCAPE = re.compile("%..")


class Secrets:
    """Secrets to redact, in every encoding in which an error may quote them; empty ones are ignored."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # Longest first: one secret may be a part of another, and the rest of the longer one would stay visible.
        longest = sorted(forms, key=lambda form: (-len(form), form))
        self._forms = re.compile("|".join(map(re.escape, longest))) if longest else None

    def hidden(self, text: str) -> str:
        """Replace each secret by `[secret]`."""
        return self._forms.sub(REPLACEMENT, text) if self._forms else text

    def __bool__(self) -> bool:
        return self._forms is not None


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for encoded in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield encoded
        yield _ESCAPE.sub(lambda escape: escape[0].lower(), encoded)
    yield html.escape(secret)
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield b64encode(secret.encode()).decode()
