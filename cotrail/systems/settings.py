"""The settings of the systems, with their papers' values as defaults."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.core.generation import RULES, Until
from cotrail.core.ports.retriever import Scope
from cotrail.core.prompts import Drop, Layout
from cotrail.faithfulness.rules import ChainRules
from cotrail.faithfulness.scores import Function, Thresholds
from cotrail.faithfulness.tasks import FUNCTIONS, Task

Positive = Annotated[int, Meta(ge=1)]

Splitter = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.+!-]+)?$", max_length=200)]

Reader = Literal["direct", "cot", "none"]


PinnedCopy = Literal["once", "again", "released"]


class RetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How paragraphs are searched for and collected (IRCoT, section 3.1, and the authors' released code).

    From the paper: `retrieval_count` (K) paragraphs a step, at most `max_paragraphs` in all.
    From the code (`commaqa/inference/ircot.py`), which the paper does not say: `query_stop_words` are dropped from
    queries; paragraphs of more than `max_paragraph_words` words are discarded, and each is cut to
    `prompt_paragraph_words` in the prompt; a paragraph is skipped if its title and its text are both at least
    `duplicate_similarity` percent alike to those of one already collected.

    duplicates: `alike` is that rule alone; the `released` code also skips a paragraph whose title is one collected
    paragraph's and whose text is another's.
    pinned: what becomes of the passage that a question pins where the corpus holds it too. It is not collected, going
        by the same likeness with titles in lower case (`once`); or `again`, like any other paragraph; or so by the
        `released` code too, where what one-step retrieval collected stands in the place of a passage of the same text.
    distinct_texts: whether paragraphs with the same text count as one in a search, as in the released code; see
    `cotrail.core.ports.retriever.best`.
    """

    retrieval_count: Positive = 4
    max_paragraphs: Positive = 15
    query_stop_words: tuple[str, ...] = ("who", "what", "when", "where", "why", "which", "how", "does", "is")
    max_paragraph_words: Positive = 600
    prompt_paragraph_words: Positive = 350
    duplicate_similarity: Annotated[float, Meta(ge=0, le=100)] = 90.0
    duplicates: Literal["alike", "released"] = "alike"
    pinned: PinnedCopy = "once"
    distinct_texts: bool = False


class ReaderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the answer is read from the paragraphs (IRCoT, section 3.2).

    reader: `direct` writes the answer at once, `cot` a chain of thought that ends in it; with `none` the answer is what
        IRCoT's own chain states (appendix F), and other systems end with their paragraphs.
    instruction: what stands before the question where demonstrations have such a line: what they have
        (`demonstrated`), or always "Answer the following question." (`released`, which the code does also for chains).
    answers: what counts as the answer in what was written: what a chain states unless it is empty, and a direct
        reader's text without a full stop at its end (`stated`), or what the `released` code makes of either, see
        `cotrail.core.answer_extraction.released_answer`. It also says whether an empty statement ends IRCoT's chain.
    """

    reader: Reader = "direct"
    instruction: Literal["demonstrated", "released"] = "demonstrated"
    answers: Literal["stated", "released"] = "stated"
    max_answer_tokens: Positive = 64
    max_chain_tokens: Positive = 200


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a question that pins a passage finds the pages to search (IRCoT, appendix B).

    count: how many titles are asked for; titles: whether `all` that the model writes are looked up, or only as many as
        were `asked` for; scope: see `cotrail.core.ports.retriever.Scope`.
    """

    count: Positive = 3
    titles: Literal["all", "asked"] = "all"
    max_tokens: Positive = 64
    scope: Scope = "only"


class PromptSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How prompts are made.

    drop: see `cotrail.core.prompts.Drop`; pinned: whether the passage that a question pins stands at the `top` of
        its paragraphs or at the `bottom`.
    """

    drop: Drop = "last"
    pinned: Literal["top", "bottom"] = "top"


class IRCoTSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """IRCoT: at most `max_sentences` sentences (8 in the paper; 10 in the released code).

    splitter: what tells where a sentence ends: cotrail's own `rules`, or a pipeline of spaCy that is installed, as the
        released code has it with `en_core_web_sm`; a run pins its version, as in `en_core_web_sm@3.8.0`.
    """

    retrieval: RetrievalSettings = RetrievalSettings()
    reading: ReaderSettings = ReaderSettings()
    pages: PageSettings = PageSettings()
    prompting: PromptSettings = PromptSettings()
    max_sentences: Positive = 8
    max_sentence_tokens: Positive = 200
    splitter: Splitter = RULES
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


LAYOUTS: dict[Task, Layout] = {"commonsense": "qa", "temporal": "qa", "tabular": "entailment"}
"""How each task's prompts are laid out (Rethinking with Retrieval, appendix A.1)."""


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is asked a question of one of the tasks of Rethinking with Retrieval, and how its text is read.

    task: how questions are asked and what counts as a prediction.
    layout: of the prompts; the task's own unless given.
    until: where a text ends. The paper's chains end where the model ends them or begins a further demonstration.
    chain_rules: how chains are read and how they decide.
    """

    task: Task = "commonsense"
    prompting: PromptSettings = PromptSettings()
    layout: Layout | None = None
    until: Until = "chain"
    chain_rules: ChainRules = "paper"

    @property
    def prompt_layout(self) -> Layout:
        """How prompts are laid out."""
        return self.layout or LAYOUTS[self.task]


class BaselineSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt without any knowledge source, answered once (Rethinking with Retrieval, sections 4.1 and 4.5)."""

    max_tokens: Positive = 256


OPENINGS: dict[Task, str] = {"commonsense": "So the answer is", "temporal": "The answer is", "tabular": ""}
"""What zero-shot prompts have the model go on from (the released code)."""


class ZeroShotSettings(BaselineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same without demonstrations; opening: what the model goes on from, the task's own unless given."""

    opening: str | None = None

    @property
    def answer_opening(self) -> str:
        """What the model goes on from; nothing for UnifiedQA, which answers at once."""
        if self.opening is not None:
            return self.opening
        return "" if self.layout == "unifiedqa" else OPENINGS[self.task]


class SelfConsistencySettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several chains of thought (Wang et al., 2022), sampled as in Rethinking with Retrieval, section 4.5.

    chains: how many; 10 unless given, and 9 for yes or no.
    """

    chains: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.7
    max_chain_tokens: Positive = 256

    @property
    def chain_count(self) -> int:
        """How many chains are sampled."""
        return self.chains or (9 if self.task == "commonsense" else 10)


KnowledgeSource = Literal["corpus", "evidence", "wikidata", "wordnet", "conceptnet", "table"]
"""Where evidence comes from: the paragraphs of the corpus, those that the dataset names as evidence (section 5.3), or
what `cotrail.engines.knowledge` has."""

EvidenceScope = Literal["paragraphs", "pages"]
"""What of a dataset's evidence is looked at."""

KNOWLEDGE: dict[Task, tuple[KnowledgeSource, ...]] = {
    "commonsense": ("corpus",),
    "temporal": ("wikidata",),
    "tabular": ("table", "wordnet", "conceptnet"),
}
"""Each task's knowledge in sections 4.2 to 4.4; the table comes first, since the earlier of equals is evidence."""


class ThresholdSettings(Thresholds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """T_m, T_e and T_c (appendix A.2)."""

    similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.5
    entailment: Annotated[float, Meta(ge=0, le=1)] = 0.6
    contradiction: Annotated[float, Meta(ge=0, le=1)] = 0.99


Variant = Literal["basic", "selection", "generation"]
"""How far Rethinking with Retrieval goes: chains are weighed, facts are selected too, or also generated (5.3)."""


Inferring = Literal["reader", "zero-shot", "unifiedqa"]
"""How an answer is inferred from supporting facts (appendix A.5)."""


class RethinkingSettings(SelfConsistencySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rethinking with Retrieval.

    query: evidence is looked for with each `sentence` of the chains, or with the `question` alone (table 3).
    knowledge: where; the task's own unless given. What is earlier in it wins among equally similar evidence.
    evidence: what of the dataset's evidence is looked at: the annotated `paragraphs`, or all of the `pages` that they
        are from, which the corpus is searched for.
    function: which of the faithfulness functions; unless given the task's, and (3) for the variants and the dataset's
        own evidence.
    voting: whether chains of one prediction add up, or the most faithful chain decides (section 5.3).
    variant: the `basic` approach, fact `selection` (I), or after it fact `generation` (II).
    topic_similarity: from which similarity on facts are about one topic. The paper gives no value; at this one
        "Aristotle died in 2000." and "... in 322BC." are, and the populations of Albany in two states are not.
    inference: how the variants infer the answer from the supporting facts (appendix A.5): by the reader of `reading`,
        by a `zero-shot` prompt, or in the form of `unifiedqa`.
    reading: the reader; with `none` the answer stays that of the basic approach. The token limits hold for the
        questions and answers of variant II too.
    """

    retrieval_count: Positive = 10
    query: Literal["sentence", "question"] = "sentence"
    knowledge: tuple[KnowledgeSource, ...] = ()
    evidence: EvidenceScope = "paragraphs"
    function: Function | None = None
    thresholds: ThresholdSettings = ThresholdSettings()
    voting: bool = True
    variant: Variant = "basic"
    topic_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.75
    inference: Inferring = "reader"
    reading: ReaderSettings = ReaderSettings()

    @property
    def infers(self) -> bool:
        """Whether the answer is inferred from the supporting facts of a variant."""
        return self.variant != "basic" and (self.inference != "reader" or self.reading.reader != "none")

    @property
    def sources(self) -> tuple[KnowledgeSource, ...]:
        """Where evidence is looked for."""
        return self.knowledge or KNOWLEDGE[self.task]

    @property
    def faithfulness_function(self) -> Function:
        """The function that faithfulness is reckoned by."""
        if self.function is not None:
            return self.function
        return 3 if self.variant != "basic" or "evidence" in self.sources else FUNCTIONS[self.task]
