"""The settings of the IRCoT family, with the paper's values as defaults."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.actions import Scope
from cotrail.prompting.prompt import Drop

Positive = Annotated[int, Meta(ge=1)]

Reader = Literal["direct", "cot", "none"]


class RetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How paragraphs are searched for and collected (IRCoT, section 3.1, and the authors' released code).

    From the paper: `retrieval_count` (K) paragraphs a step, at most `max_paragraphs` in all.
    From the code (`commaqa/inference/ircot.py`), which the paper does not say: `query_stop_words` are dropped from
    queries; paragraphs of more than `max_paragraph_words` words are discarded, and each is cut to
    `prompt_paragraph_words` in the prompt; a paragraph is skipped if its title and its text are both at least
    `duplicate_similarity` percent alike to those of one already collected.

    duplicates: `alike` is that rule alone; the `released` code also skips a paragraph whose title is one collected
    paragraph's and whose text is another's.
    """

    retrieval_count: Positive = 4
    max_paragraphs: Positive = 15
    query_stop_words: tuple[str, ...] = ("who", "what", "when", "where", "why", "which", "how", "does", "is")
    max_paragraph_words: Positive = 600
    prompt_paragraph_words: Positive = 350
    duplicate_similarity: Annotated[float, Meta(ge=0, le=100)] = 90.0
    duplicates: Literal["alike", "released"] = "alike"


class ReaderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the answer is read from the paragraphs (IRCoT, section 3.2).

    reader: `direct` writes the answer at once, `cot` a chain of thought that ends in it; with `none` the answer is what
        IRCoT's own chain states (appendix F), and other systems end with their paragraphs.
    instruction: what stands before the question where demonstrations have such a line: what they have
        (`demonstrated`), or always "Answer the following question." (`released`, which the code does also for chains).
    """

    reader: Reader = "direct"
    instruction: Literal["demonstrated", "released"] = "demonstrated"
    max_answer_tokens: Positive = 64
    max_chain_tokens: Positive = 200


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a question that pins a passage finds the pages to search (IRCoT, appendix B).

    count: how many titles are asked for; scope: see `cotrail.actions.Scope`.
    """

    count: Positive = 3
    max_tokens: Positive = 64
    scope: Scope = "only"


class PromptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How prompts are packed; see `cotrail.prompting.prompt.Drop`."""

    drop: Drop = "last"


class IRCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """IRCoT: at most `max_sentences` sentences (8 in the paper; 10 in the released code)."""

    retrieval: RetrievalSettings = RetrievalSettings()
    reading: ReaderSettings = ReaderSettings()
    pages: PageSettings = PageSettings()
    prompting: PromptSettings = PromptSettings()
    max_sentences: Positive = 8
    max_sentence_tokens: Positive = 200
    reasoning_openings: tuple[str, ...] = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")


class OneStepSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """OneR: one search with the question."""

    retrieval: RetrievalSettings = RetrievalSettings(retrieval_count=15)
    reading: ReaderSettings = ReaderSettings()
    pages: PageSettings = PageSettings()
    prompting: PromptSettings = PromptSettings()


class NoRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NoR: the reader alone."""

    reading: ReaderSettings = ReaderSettings()
    prompting: PromptSettings = PromptSettings()
