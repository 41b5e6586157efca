"""Keeping secrets out of this process's logs: Celery and the Redis client quote what servers answer."""

import logging
from typing import Any

from cotrail.common.redaction import Secrets


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
