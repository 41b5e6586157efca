"""A second request in a conversation, about what the model wrote to the first."""

from cotrail.core.prompts import Piece, Prompt, user


def asked_on(prompt: Prompt, written: str, *words: str | Piece) -> Prompt:
    """The conversation with what the model wrote, and these words behind it.

    Where it wrote nothing they go on in the user's turn: servers refuse empty turns.
    """
    return going_on(prompt.wrote(written) if written.strip() else prompt, *words)


def going_on(prompt: Prompt, *words: str | Piece) -> Prompt:
    """The conversation with these words of the user's, in a turn of their own only behind one of somebody else's.

    Servers refuse two of the user's in a row.
    """
    return prompt.append("\n\n", *words) if prompt.turns[-1].role == "user" else prompt.add(user(*words))
