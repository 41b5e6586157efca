"""Segments of a conversation that a chat template laid out as text."""

from msgspec import Struct


class Segment(Struct, frozen=True):
    """A part of a conversation as text; plain: whether it reads like a control token and is none."""

    text: str
    plain: bool = False
