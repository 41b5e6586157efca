"""Paragraphs of a corpus that is to be indexed, embedded by workers (`cotrail.services.runs.indexing`).

A question of such a run is some paragraphs; it has one step and no answer.
"""

from typing import Any

from msgspec import Struct

from cotrail.core.actions.embed import Embed
from cotrail.core.binding import EMBEDDING
from cotrail.core.demonstrations import Shots
from cotrail.core.ports.encoders import EMBEDDER
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import Answer, System
from cotrail.errors import InputError
from cotrail.systems.spec import Needs, SystemSpec, always


class NoSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run's embedder decides all."""


def embedding(question: Question, shots: Shots, settings: NoSettings) -> System:  # noqa: ARG001 - the same for all systems
    """Embed the paragraphs."""
    given = (each for each in question.evidence if isinstance(each, GoldParagraph))
    yield Embed(sentences=(), paragraphs=tuple(Paragraph(id="", title=each.title, text=each.text) for each in given))
    return Answer(text="")


def _refused(_: Any) -> Any:
    raise InputError("the system embedding has the runs of `cotrail index --queued`; submit another one")


SPEC = SystemSpec(
    name=EMBEDDING,
    version=1,
    title="Embedding",
    meaning="Embeds paragraphs of a corpus that is to be indexed.",
    settings=NoSettings,
    open=embedding,
    needs=always(Needs(engines=(EMBEDDER,))),
    readerless=True,
    spelled_out=_refused,
)
