"""Views of steps: what there is to show of an action and its result.

A kind of action makes its view (`ActionKind.view`). Terminals, pages and programs draw the parts of a view, and know no
kind.
"""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from cotrail.common.humanize import count
from cotrail.common.printable_text import cut
from cotrail.core.calls import Call
from cotrail.core.generation import ThoughtsKind
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Retrieved

NAME = 60
"""Characters of a sentence without a title that name it."""

TextRole = Literal["thought", "answer", "verdict"]
"""What a text is: a thought on the way to the answer, an answer, maybe that to a question of the system's own, or a
verdict on one."""


class Part(Struct, frozen=True, kw_only=True, tag_field="is"):
    """A part of what came out of a step; `is` says which in JSON."""


class WrittenText(Part, frozen=True, tag="text"):
    """A text; blank: what is said where it is empty."""

    text: str
    role: TextRole = "answer"
    blank: str = "nothing"


class Thoughts(Part, frozen=True, tag="thoughts"):
    """What a model thought before its text; kind: see `ThoughtsKind`; tokens: their number, 0 if unknown."""

    text: str
    kind: ThoughtsKind
    tokens: int = 0

    @property
    def words(self) -> str:
        """What it is, in words."""
        length = f" for {count(self.tokens, 'token')}" if self.tokens else ""
        match self.kind:
            case "hidden":
                return f"thought{length}, which its provider doesn't show"
            case "summary":
                return f"thought{length}, summed up by its provider"
        return f"thought{length}"


class ToolCalls(Part, frozen=True, tag="calls"):
    """Tools that a model called, in their order."""

    calls: tuple[Call, ...]


class FoundParagraph(Hit, frozen=True, kw_only=True):
    """A paragraph that was found.

    digest: its name in the store; new: whether the question collected it at this step; gold: whether the dataset marks
    it as needed. A kind's view leaves both False, since they depend on the question.
    """

    digest: str
    new: bool = False
    gold: bool = False

    @property
    def scored(self) -> str:
        """Its score and, of a search that fused lists, its rank in each: `0.0325 (bm25 3, dense 1)`."""
        if not self.lists:
            return f"{self.score:.2f}"
        return f"{self.score:.4f} ({', '.join(f'{each.list} {each.rank}' for each in self.lists)})"


class FoundParagraphs(Part, frozen=True, tag="found"):
    """Paragraphs that a search found, the best first."""

    hits: tuple[FoundParagraph, ...]


class ScoredText(Struct, frozen=True, kw_only=True):
    """A text with its score; digest: of the paragraph that the text names, empty where it stands for itself."""

    score: float
    text: str
    digest: str = ""


class ScoredTexts(Part, frozen=True, tag="scores"):
    """Texts with their scores, in the order asked for."""

    rows: tuple[ScoredText, ...]


class Note(Part, frozen=True, tag="note"):
    """A line in words; digest: of the paragraph that it names, empty where it names none."""

    text: str
    digest: str = ""


class Facts(Part, frozen=True, tag="facts"):
    """How it came about, a few words each; displays add the step's own, such as its time."""

    facts: tuple[str, ...]


class Recorded(Part, frozen=True, tag="recorded"):
    """Request and result as they are recorded, of a kind without a view of its own."""

    request: Any
    result: Any


class View(Struct, frozen=True, kw_only=True):
    """What there is to show of a step.

    asked: what it was about, such as a query; empty where no short text says it.
    verb: what was done with `asked`, as in `searched for “bridges”`; empty where the kind's name says it.
    source: the knowledge source that was asked, instead of a corpus.
    labels: what else tells it apart from other steps of its kind: `chain 3`.
    parts: what came out of it; none before it has a result.
    """

    asked: str = ""
    verb: str = ""
    source: str | None = None
    labels: tuple[str, ...] = ()
    parts: tuple[WrittenText | Thoughts | ToolCalls | FoundParagraphs | ScoredTexts | Note | Facts | Recorded, ...] = ()

    @property
    def found(self) -> list[FoundParagraph]:
        """All paragraphs that were found."""
        return [hit for part in self.parts if isinstance(part, FoundParagraphs) for hit in part.hits]


def search_view(verb: str, query: str, result: Retrieved | None, source: str | None = None) -> View:
    """The view of a step that finds paragraphs."""
    hits = (FoundParagraph(**asdict(hit), digest=hit.paragraph.digest) for hit in (result.hits if result else ()))
    parts = (FoundParagraphs(hits=tuple(hits)),) if result else ()
    return View(asked=query, verb=verb, source=source, parts=parts)


def name_of(paragraph: Paragraph) -> str:
    """Its title; a knowledge source's sentence is its own name."""
    return paragraph.title or cut(paragraph.text, NAME)
