"""Types of fields that experiment files of both papers have."""

from typing import Annotated

from msgspec import Meta

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
ExperimentName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=200,
        description="a name of letters, digits, dots, dashes and underscores (200 at most)",
        examples=["main-results"],
    ),
]
