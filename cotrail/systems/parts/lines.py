"""Lines of a text that a model wrote, where each is a step of its chain of thought."""


def lines(text: str) -> tuple[str, ...]:
    """The lines that aren't blank, stripped."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())
