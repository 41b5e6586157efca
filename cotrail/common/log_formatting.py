"""Log formatting that prevents log injection: quoted text can neither fake a record nor control the terminal."""

import logging
from copy import copy

from cotrail.common.printable_text import indented


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
