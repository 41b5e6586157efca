"""Settings of Search-in-the-Chain."""

from typing import Annotated, Literal

from msgspec import Meta

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.questions import QuestionSort
from cotrail.systems.parts.document_reading import DocumentReaderSettings
from cotrail.systems.searchain.chain_of_query import AnswerRule

Answers = Literal["short", "long"]
Duplicates = Literal["equal", "embedder", "rater"]


class SearChainSettings(DocumentReaderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search-in-the-Chain."""

    questions: QuestionSort = "multi-hop"
    """What sort of questions are asked, which decides the words of the prompts; the dataset's own unless given."""

    answers: Answers | None = None
    """How an answer is compared with its document: `short` ones by containment, `long` ones by ROUGE-L; by the sort
    of questions unless given."""

    rounds: Positive = 5
    """How many chains the model writes at most (r_max, section 4.1)."""

    theta: float = 1.5
    """A reader corrects the model only above this confidence, which is on the scale of its logits."""

    alpha: Annotated[float, Meta(ge=0, le=1)] = 0.35
    """A long answer of at most this ROUGE-L isn't consistent with its document."""

    duplicates: Duplicates = "equal"
    """What counts as a query that was asked before: one that is `equal` after normalization, one whose embedding
    has a cosine similarity of `least_similarity` or more, or one that the run's `rater` gives more than
    `least_rating`."""

    least_similarity: Annotated[float, Meta(ge=-1, le=1)] = 0.9
    """The cosine similarity from which on a query was asked before, with the duplicates of the `embedder`."""

    least_rating: float = 0.5
    """The rating above which a query was asked before, with the duplicates of the `rater`."""

    retrieve: bool = True
    """Whether documents are searched for; without it the model answers by a single chain (SearChain w/o IR, table
    1)."""

    verify: bool = True
    """Whether the model is corrected."""

    complete: bool = True
    """Whether queries that it can't answer are answered for it, and not passed over."""

    tracing: bool = True
    """Whether a last turn writes the final content from the path, with marks; else it is that of the last chain,
    for which no marks are asked."""

    node_answers: AnswerRule = "tag"
    """What counts as a query's answer: the text behind its `tag`; or, as in the released code, the next `line` with
    the word "Answer" in it."""

    ahead: bool = False
    """Whether the documents of all queries of a chain are searched for and read at once, and not each after the one
    before it has passed. It saves time and costs steps; the answer is the same."""

    stop: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(max_length=4)] = ("\n[Question]",)
    """Strings before one of which a message ends; by default where the model begins a further example."""

    max_queries: Positive = 20
    """How many queries of a chain are looked at."""

    max_chain_tokens: Positive = 1024
    """The most tokens of a chain."""

    max_final_tokens: Positive = 512
    """The most tokens of the final content."""

    temperature: Temperature | None = None
    """The temperature of chains and final content; the run's unless given. The reader's is always 0."""

    @property
    def reads(self) -> bool:
        """Return whether any document is read."""
        return self.retrieve and (self.verify or self.complete)

    @property
    def has_long_answers(self) -> bool:
        """Return whether answers are compared with their documents as long ones."""
        return (self.answers or ("long" if self.questions == "long-form" else "short")) == "long"
