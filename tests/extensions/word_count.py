"""A system: the answer is the number of the question's words."""

from msgspec import Struct

from cotrail.core.demonstrations import Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.spec import Needs, SystemSpec

from .counting import Count, Counted


class WordCountSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How words are counted.

    extra: added to the number.
    """

    extra: int = 0


def word_count(question: Question, _: Shots, settings: WordCountSettings) -> System:
    """Counts the words of the question."""
    counted = yield Count(text=question.text)
    assert isinstance(counted, Counted)
    return Answer(text=str(counted.words + settings.extra))


SPEC = SystemSpec(
    name="word-count",
    version=1,
    title="Word count",
    settings=WordCountSettings,
    open=word_count,
    needs=lambda _: Needs(),
)
