"""Log records that quote text from elsewhere: each stays one record, and is read, not obeyed."""

import logging
from copy import copy

from cotrail.common.printable_text import indented


class PrintableFormatter(logging.Formatter):
    """Formats as another formatter does, the message and its traceback made printable and indented from line two."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        shown = copy(record)
        shown.msg, shown.args = indented(record.getMessage()), ()
        if record.exc_info and isinstance(record.exc_info, tuple):
            shown.exc_text = "  " + indented(self._inner.formatException(record.exc_info))
        return self._inner.format(shown)


def print_safely(*handlers: logging.Handler) -> None:
    """Has the handlers print nothing that a terminal would obey, or that poses as another record."""
    for handler in handlers:
        if not isinstance(handler.formatter, PrintableFormatter):
            handler.setFormatter(PrintableFormatter(handler.formatter))
