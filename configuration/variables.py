"""Variables named COTRAIL_ that no setting has, which are most likely misspelt."""

import difflib
import logging
import os
from collections.abc import Iterable

PREFIX = "COTRAIL_"

OTHERS = (
    "FLOWER_PASSWORD",
    "FLOWER_USER",
    "LOG",
    "OTHER_LOGS",
    "POSTGRES_PASSWORD",
    "READY_FILE",
    "REDIS_PASSWORD",
)
"""Variables that aren't settings: those of docker-compose.yml, of Flower, and of the processes of the stack."""

logger = logging.getLogger(__name__)


def warn_of_unknown(settings: Iterable[str]) -> None:
    """Log a warning for each variable of the environment that is neither a setting nor one of the others."""
    known = [*(name.upper() for name in settings), *OTHERS]
    for variable in sorted(os.environ):
        name = variable.upper().removeprefix(PREFIX)
        if variable.upper().startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"; did you mean {PREFIX}{near[0]}?" if near else "; unset it"
            logger.warning("cotrail has no setting %r, so this variable changes nothing%s", variable, hint)
