"""Safe logs: quoted text can neither fake a record nor control the terminal, and secrets are redacted."""

import logging
from copy import copy
from typing import Any

from cotrail.common.printable_text import indented
from cotrail.common.redaction import Secrets


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
