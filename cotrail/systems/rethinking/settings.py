"""The settings of Rethinking with Retrieval, with the paper's values as defaults."""

from typing import Annotated, Literal

from msgspec import Meta

from cotrail.common.humanize import RetrievalCount
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import FUNCTIONS, Function, Thresholds
from cotrail.systems.parts.majority import SampledSettings
from cotrail.systems.parts.reading import ReaderSettings

KnowledgeSource = Literal["corpus", "evidence", "wikidata", "wordnet", "conceptnet", "table"]
"""A source of evidence: the paragraphs of the corpus, those that the dataset names as evidence (section 5.3), or one of
`cotrail.engines.knowledge`."""

EvidenceScope = Literal["paragraphs", "pages"]
"""The part of a dataset's evidence that is used."""

KNOWLEDGE: dict[Task, tuple[KnowledgeSource, ...]] = {
    "commonsense": ("corpus",),
    "temporal": ("wikidata",),
    "tabular": ("table", "wordnet", "conceptnet"),
}
"""Each task's knowledge in sections 4.2 to 4.4; the table comes first, since the earlier of equals is evidence."""


class ThresholdSettings(Thresholds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The thresholds T_m, T_e and T_c, with their bounds (appendix A.2)."""

    similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.5
    """T_m, from which on a sentence counts as similar to its evidence."""

    entailment: Annotated[float, Meta(ge=0, le=1)] = 0.6
    """T_e, from which on a sentence counts as entailed by its evidence."""

    contradiction: Annotated[float, Meta(ge=0, le=1)] = 0.99
    """T_c, from which on a sentence counts as contradicted by its evidence."""


Variant = Literal["basic", "selection", "generation"]
"""The variants of section 5.3: chains are weighed (`basic`), facts are also selected (I), or also generated (II)."""

Inferring = Literal["reader", "zero-shot", "unifiedqa"]
"""Ways of inferring an answer from supporting facts (appendix A.5)."""


class RethinkingSettings(SampledSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rethinking with Retrieval."""

    retrieval_count: RetrievalCount = 10
    """Paragraphs a search (K)."""

    query: Literal["sentence", "question"] = "sentence"
    """Evidence is searched for with each `sentence` of the chains, or with the `question` alone (table 3)."""

    knowledge: tuple[KnowledgeSource, ...] = ()
    """The sources of evidence; the task's own unless given. The earlier source wins among equally similar evidence."""

    evidence: EvidenceScope = "paragraphs"
    """The part of the dataset's evidence that is used: the annotated `paragraphs`, or all of the `pages` that they
    are from, which the corpus is searched for."""

    function: Function | None = None
    """The faithfulness function; unless given the task's, and (3) for the variants and the dataset's own evidence."""

    thresholds: ThresholdSettings = ThresholdSettings()
    voting: bool = True
    """Whether chains of one prediction add up, or the most faithful chain decides (section 5.3)."""

    variant: Variant = "basic"
    """The `basic` approach, fact `selection` (I), or after it fact `generation` (II)."""

    topic_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.75
    """The least similarity of facts about one topic. The paper gives no value; at this one "Aristotle died in
    2000." and "... in 322BC." are about one topic, and the populations of Albany in two states are not."""

    inference: Inferring = "reader"
    """How the variants infer the answer from the supporting facts (appendix A.5): by the reader of `reading`, by a
    `zero-shot` prompt, or in the form of `unifiedqa`."""

    inferring_model: Literal["own", "inferrer"] = "own"
    """Which model infers the answer from the supporting facts: the run's `own`, or a second one, which the run names as
    its `inferrer`. The paper has UnifiedQA-v2 do it, whose form is the inference `unifiedqa`."""

    reading: ReaderSettings = ReaderSettings()
    """The reader; with `none` the answer stays that of the basic approach. The token limits hold for the questions
    and answers of variant II too."""

    @property
    def infers(self) -> bool:
        """Return whether the answer is inferred from the supporting facts of a variant."""
        return self.variant != "basic" and (self.inference != "reader" or self.reading.reader != "none")

    @property
    def infers_elsewhere(self) -> bool:
        """Return whether a second model infers the answer."""
        return self.infers and self.inferring_model == "inferrer"

    @property
    def sources(self) -> tuple[KnowledgeSource, ...]:
        """The sources of evidence."""
        return self.knowledge or KNOWLEDGE[self.task]

    @property
    def faithfulness_function(self) -> Function:
        """The function by which faithfulness is computed."""
        if self.function is not None:
            return self.function
        return 3 if self.variant != "basic" or "evidence" in self.sources else FUNCTIONS[self.task]
