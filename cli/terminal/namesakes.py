"""Runs that have the same name, so that it finds none of them."""

from collections.abc import Sequence

from cotrail.cli.terminal.output import console
from cotrail.common.humanize import count
from cotrail.common.printable_text import cut


def print_namesakes(name: str | None, others: Sequence[str]) -> None:
    """Says where a name that a run has just got no longer finds one run; others: the other runs that have it."""
    if others:
        message = f"{count(len(others), 'other run')} named {name!r} ({cut(', '.join(others), 100)}): give ids instead"
        console(stderr=True).print(message, style="yellow", soft_wrap=True)
