"""Demonstration sets: samples of a file's demonstrations, drawn by a seed (IRCoT, section 4.1)."""

import hashlib

from cotrail.errors import DemonstrationError
from cotrail.prompting.prompt import Demonstrations


def demonstration_sets(
    demonstrations: Demonstrations, seed: int, sets: int = 3, size: int = 15
) -> tuple[Demonstrations, ...]:
    """So many sets of so many demonstrations, in the order of the draw, which is that of the prompt.

    Set number n depends on the ids, the seed and n alone, so that all forms of the same demonstrations give the same
    sets, however their files are ordered. Raises DemonstrationError where there are fewer than `size`.
    """
    if len(demonstrations.items) < size:
        raise DemonstrationError(
            f"a set of {size} demonstrations can't be drawn from {len(demonstrations.items)}; ask for smaller sets, or "
            "give more demonstrations"
        )
    return tuple(_drawn(demonstrations, f"{seed}\0{number}", size) for number in range(1, sets + 1))


def _drawn(demonstrations: Demonstrations, salt: str, size: int) -> Demonstrations:
    order = sorted(demonstrations.items, key=lambda each: hashlib.sha256(f"{salt}\0{each.id}".encode()).digest())
    return Demonstrations(items=tuple(order[:size]))
