"""Keeps secrets out of the logs of whatever runs in this process: Celery and Redis quote what servers say to them."""

import logging
from typing import Any

from cotrail.common.redaction import Secrets


def hide_in_logs(secrets: Secrets) -> None:
    """From now on no log of this process, nor any traceback in it, has these."""
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
        said = record.getMessage()
    except Exception:  # noqa: BLE001 - logging says so itself where it writes the record
        return
    hidden = secrets.hidden(said)
    if hidden != said:
        record.msg, record.args = hidden, None
    if record.exc_info:
        record.exc_text = secrets.hidden(logging.Formatter().formatException(record.exc_info))
