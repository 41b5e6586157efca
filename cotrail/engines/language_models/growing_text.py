"""A text that is written piece by piece."""


class GrowingText:
    """A text to which pieces are added, in time linear in the text: `text += piece` copies an attribute each time."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.characters = 0

    def add(self, piece: str) -> None:
        """Adds the next piece."""
        self._pieces.append(piece)
        self.characters += len(piece)

    @property
    def text(self) -> str:
        """All that was written so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]
