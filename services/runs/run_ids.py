"""Ids of new runs."""

import secrets
from datetime import date


def new_id(system: str) -> str:
    """An id for a run of this system."""
    # Three random bytes tell the runs of one day apart; the primary key refuses the rare collision.
    return f"{system}-{date.today():%Y%m%d}-{secrets.token_hex(3)}"
