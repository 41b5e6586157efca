"""Bounded numbers in settings and files."""

from typing import Annotated

from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
