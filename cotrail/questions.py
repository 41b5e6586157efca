"""A question of a dataset."""

from msgspec import Struct


class GoldParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph that the dataset marks as needed for the answer."""

    title: str
    text: str


class Question(Struct, frozen=True, kw_only=True):
    """A question as its dataset publishes it.

    answers: every form that counts as right, the main one first; empty where none is published.
    gold: the paragraphs that together support the answer; empty where none are published.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[GoldParagraph, ...] = ()
