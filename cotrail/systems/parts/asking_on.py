"""A second request in a conversation, about what the model wrote to the first."""

from cotrail.core.prompts import Piece, Prompt, user


def asked_on(prompt: Prompt, written: str, *words: str | Piece) -> Prompt:
    """The conversation with what the model wrote, and these words behind it.

    Where it wrote nothing they go on in the user's turn: servers refuse empty turns, and two of the user's in a row.
    """
    return prompt.wrote(written).add(user(*words)) if written.strip() else prompt.append("\n\n", *words)
