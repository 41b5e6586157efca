"""Calls of tools, put together from the pieces in which a server writes them."""

from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.core.calls import Call


class Function(Struct, frozen=True):
    """A piece of what a call says."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(Struct, frozen=True):
    """A piece of a call; index: which call it belongs to, by default the one that its id begins, or the last."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Calls:
    """Takes pieces of calls; characters: how much text they have."""

    def __init__(self) -> None:
        self.characters = 0
        self._pieces: dict[int, list[CallPiece]] = {}

    def take(self, piece: CallPiece) -> None:
        """Adds a piece."""
        index = piece.index
        if index is None:
            index = len(self._pieces) - (1 if self._pieces and not piece.id else 0)
        self._pieces.setdefault(index, []).append(piece)
        function = piece.function or Function()
        self.characters += len(function.name or "") + len(function.arguments or "")

    def whole(self) -> tuple[Call, ...]:
        """The calls in their order."""
        return tuple(_call(pieces) for _, pieces in sorted(self._pieces.items()))


def _call(pieces: list[CallPiece]) -> Call:
    functions = [piece.function for piece in pieces if piece.function]
    return Call(
        name=storable("".join(each.name or "" for each in functions)),
        arguments=storable("".join(each.arguments or "" for each in functions)),
        id=storable(next((piece.id for piece in pieces if piece.id), "")),
    )
