"""The template of few-shot prompts: demonstrations, paragraphs, a question, the chain so far (IRCoT, section 3.1)."""

from cotrail.core.demonstrations import WORDS, Demonstrations, Drop, Layout
from cotrail.core.prompts import Asked, Demonstrated, Piece, Prompt, Shown, Turn, Written
from cotrail.core.questions import Paragraph

PINNED_LAST = 2
"""What the other paragraphs yield where a pinned passage stands behind them: it stays longest all the same."""


def few_shot_prompt(
    *,
    demonstrations: Demonstrations,
    paragraphs: tuple[Paragraph, ...] = (),
    question: str,
    sentences: tuple[str, ...] = (),
    max_paragraph_words: int = 350,
    drop: Drop = "last",
    pinned_last: bool = False,
    layout: Layout = "ircot",
) -> Prompt:
    """A prompt of plain text, which the model continues behind the sentences.

    paragraphs: in the order collected, so that the prompts of a question share a long prefix.
    sentences: the chain of thought so far.
    max_paragraph_words: each paragraph is cut to this many space-separated words.
    drop: which demonstrations are left out where not all fit.
    pinned_last: whether the first of the paragraphs, a pinned passage, stands behind the others in the text. Where not
        all fit it stays the longest all the same.
    layout: how all of it is laid out as a text.
    """
    words = WORDS[layout]
    moved = int(pinned_last)
    shown: list[Piece] = [
        Shown(
            paragraph=paragraph,
            form=words.paragraph(paragraph.title),
            words=max_paragraph_words,
            yields=PINNED_LAST if pinned_last and place else 1,
        )
        for place, paragraph in enumerate(paragraphs)
    ]
    facts, question_piece = [*shown[moved:], *shown[:moved]], Asked(question, words.asked)
    pieces = [question_piece, *facts] if layout == "unifiedqa" else [*facts, question_piece, *_chain(sentences)]
    first = Demonstrated(demonstrations=demonstrations, layout=layout, drop=drop)
    return Prompt(turns=(Turn(role="", pieces=(first, *pieces), lower=layout == "unifiedqa"),))


def _chain(sentences: tuple[str, ...]) -> list[Written]:
    """The sentences, each with the blank before it; what the model continues never ends in white space."""
    texts = [f" {sentence}" for sentence in sentences]
    for place in reversed(range(len(texts))):
        texts[place] = texts[place].rstrip()
        if texts[place]:
            break
    return [Written(text) for text in texts]
