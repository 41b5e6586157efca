"""What actions that continue a prompt have in common."""

import hashlib

from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.binding import Binding
from cotrail.core.generation import Sampling


def sampling(action: Reason | Read, binding: Binding) -> Sampling:
    """How the action's text is drawn; every sample has a seed of its own, made of the run's."""
    temperature = binding.temperature if action.temperature is None else action.temperature
    sample = action.sample if isinstance(action, Reason) else None
    if sample is None:
        return Sampling(temperature=temperature, seed=binding.seed)
    digest = hashlib.sha256(f"{binding.seed} {sample}".encode()).digest()
    return Sampling(temperature=temperature, seed=int.from_bytes(digest[:4]) >> 1, sample=sample)
