"""Systems that reason and retrieve in turns: here in this process (`cotrail.ask`), or by workers (`cotrail submit`).

What is named here makes a system of one's own and asks it (docs/own-systems.md). The domain of cotrail is here too: the
language of systems, the systems, engines, data, evaluation and the audit, which know of no Celery, SQL or HTTP.
"""

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

_PLACES = {
    **dict.fromkeys(("ask", "ask_async", "run", "index"), "cotrail.inprocess"),
    **dict.fromkeys(("Answered", "Answers"), "cotrail.answers"),
    **dict.fromkeys(("Environment", "Episode", "Observation"), "cotrail.environment"),
    **dict.fromkeys(("system", "search", "write"), "cotrail.systems.own"),
    **dict.fromkeys(("Answer", "Together", "StepFailed", "LimitReached"), "cotrail.core.system"),
    **dict.fromkeys(("Paragraph", "Question"), "cotrail.core.questions"),
    **dict.fromkeys(("Retrieve", "Open", "Lookup"), "cotrail.core.actions.retrieve"),
    **dict.fromkeys(("Reason", "Read"), "cotrail.core.actions.generate"),
    **dict.fromkeys(("Embed", "Rate"), "cotrail.core.actions.embed"),
    **dict.fromkeys(("Entail", "Extract"), "cotrail.core.actions.entail"),
    "Needs": "cotrail.systems.spec",
    **dict.fromkeys(("Command", "RunView"), "cotrail.configuration.extensions"),
    "Metric": "cotrail.evaluation.metrics.metric",
}
"""The module of each name, which is imported as the name is first used: `import cotrail` costs nothing."""

__all__ = [*_PLACES]  # noqa: PLE0604 - the names are the table's


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'cotrail' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
