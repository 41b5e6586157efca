"""Safe logs: quoted text can neither fake a record nor control the terminal, and secrets are redacted."""

import html
import json
import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any
from urllib.parse import quote, quote_plus

from cotrail.common.printable_text import indented

# Redaction of passwords and keys in everything that is written or printed.
#
# Servers and proxies quote in their errors what they were sent, literally or in the encoding of some layer in between.

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


class PrintableFormatter(logging.Formatter):
    """Wraps another formatter: message and traceback are made printable and indented from their second line on."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        """Format the record; the record itself stays as it is for other handlers."""
        shown = copy(record)
        shown.msg, shown.args = indented(record.getMessage()), ()
        if record.exc_info and isinstance(record.exc_info, tuple):
            shown.exc_text = "  " + indented(self._inner.formatException(record.exc_info))
        return self._inner.format(shown)


def print_safely(*handlers: logging.Handler) -> None:
    """Wrap the formatters of these handlers in `PrintableFormatter`, each once."""
    for handler in handlers:
        if not isinstance(handler.formatter, PrintableFormatter):
            handler.setFormatter(PrintableFormatter(handler.formatter))


def hide_in_logs(secrets: Secrets) -> None:
    """Redact these from every log record of this process, tracebacks included."""
    if not secrets:
        return
    make = logging.getLogRecordFactory()

    def made(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        _hide(record, secrets)
        return record

    logging.setLogRecordFactory(made)


def _hide(record: logging.LogRecord, secrets: Secrets) -> None:
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - logging reports it when it writes the record
        return
    hidden = secrets.hidden(message)
    if hidden != message:
        record.msg, record.args = hidden, None
    if record.exc_info:
        record.exc_text = secrets.hidden(logging.Formatter().formatException(record.exc_info))
