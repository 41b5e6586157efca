"""The settings of the IRCoT family, with the paper's values as defaults."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Positive = Annotated[int, Meta(ge=1)]

Reader = Literal["direct", "cot", "none"]


class RetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How paragraphs are searched for and collected (IRCoT, section 3.1, and the authors' released code).

    From the paper: `retrieval_count` (K) paragraphs a step, at most `max_paragraphs` in all.
    From the code (`commaqa/inference/ircot.py`), which the paper does not say: `query_stop_words` are dropped from
    queries; paragraphs of more than `max_paragraph_words` words are discarded, and each is cut to
    `prompt_paragraph_words` in the prompt; a paragraph is skipped if its title and its text are both at least
    `duplicate_similarity` percent alike to those of one already collected.
    """

    retrieval_count: Positive = 4
    max_paragraphs: Positive = 15
    query_stop_words: tuple[str, ...] = ("who", "what", "when", "where", "why", "which", "how", "does", "is")
    max_paragraph_words: Positive = 600
    prompt_paragraph_words: Positive = 350
    duplicate_similarity: Annotated[float, Meta(ge=0, le=100)] = 90.0


class ReaderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the answer is read from the paragraphs (IRCoT, section 3.2).

    reader: `direct` writes the answer at once, `cot` a chain of thought that ends in it.
    """

    reader: Reader = "direct"
    max_answer_tokens: Positive = 64
    max_chain_tokens: Positive = 200


class IRCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """IRCoT: at most `max_sentences` sentences (8 in the paper; 10 in the released code)."""

    retrieval: RetrievalSettings = RetrievalSettings()
    reading: ReaderSettings = ReaderSettings()
    max_sentences: Positive = 8
    max_sentence_tokens: Positive = 200
    reasoning_openings: tuple[str, ...] = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")


class OneStepSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OneR: one search with the question."""

    retrieval: RetrievalSettings = RetrievalSettings(retrieval_count=15)
    reading: ReaderSettings = ReaderSettings()


class NoRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NoR: the reader alone."""

    reading: ReaderSettings = ReaderSettings()
