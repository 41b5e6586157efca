"""Tools that a model may call, and its calls of them."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

ArgumentsT = TypeVar("ArgumentsT", bound=Struct)


class Call(Struct, frozen=True, kw_only=True):
    """A call of a tool. arguments: JSON; id: given by the system, "TURN.NUMBER", since a server's are random."""

    name: str
    arguments: str
    id: str = ""

    def read(self, arguments: type[ArgumentsT]) -> ArgumentsT | None:
        """The arguments as this type; None where the model wrote others, or no JSON."""
        try:
            return msgspec.json.decode(self.arguments, type=arguments)
        except msgspec.DecodeError:
            return None


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that the model may call; parameters: their JSON Schema, as text."""

    name: str
    description: str
    parameters: str


def numbered(calls: Iterable[Call], turn: int) -> tuple[Call, ...]:
    """The calls of the model's turn of that number, with the ids that a system gives them."""
    return tuple(replace(call, id=f"{turn}.{number}") for number, call in enumerate(calls))
