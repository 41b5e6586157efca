"""Narrowing of actions for benchmarks that execute them in their own process."""

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.system import Action


def prompted(action: Action) -> Reason | Read:
    """Return an action that has a prompt, by its type; TypeError for any other, which no benchmark's system yields."""
    if not isinstance(action, Reason | Read):
        raise TypeError(f"a benchmark executes no {type(action).__name__}")
    return action
