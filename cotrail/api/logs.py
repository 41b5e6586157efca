"""The ids of requests in what is logged while they are answered."""

import logging
from typing import Any

from uvicorn.logging import AccessFormatter

from cotrail.api.problems import request_id

ACCESS = "uvicorn.access"

ACCESS_FORMAT = '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s [%(request_id)s]'


def name_requests() -> None:
    """Have each record of this process say which request it belongs to, if it does to any."""
    make = logging.getLogRecordFactory()

    def made(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        record.request_id = id_ = request_id.get()
        if record.name == ACCESS and isinstance(record.args, tuple):
            record.args = tuple(map(_without_query, record.args))
        if id_ and record.name != ACCESS:  # its formatter shows other parts than the message
            record.msg = f"{record.msg} [{id_}]"
        return record

    logging.setLogRecordFactory(made)
    for handler in logging.getLogger(ACCESS).handlers:
        handler.setFormatter(AccessFormatter(ACCESS_FORMAT))


def _without_query(part: object) -> object:
    """A part of what is logged of a request, without its query: some clients put a secret there."""
    return part.partition("?")[0] if isinstance(part, str) else part
