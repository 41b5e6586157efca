"""Ids of new runs."""

import secrets
from datetime import date


def new_id(system: str, *, asked: bool = False) -> str:
    """An id for a run of this system; asked: whether it is a single question, of which there may be many a second."""
    # Three random bytes tell the runs of one day apart; the primary key refuses the rare collision.
    return f"{system}-{date.today():%Y%m%d}-{secrets.token_hex(8 if asked else 3)}"
