"""What all actions have in common."""

from msgspec import Struct


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a system may yield: one step."""
