"""A system: the answer is the number of the translated question's words."""

from msgspec import Struct

from cotrail.core.demonstrations import Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System, expect
from cotrail.systems.spec import Needs, SystemSpec

from .counting import Count, Counted, Translate, Translated
from .translating import TRANSLATOR


class WordCountSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How words are counted."""

    translated: bool = False
    """Whether the question is translated first."""


def word_count(question: Question, _: Shots, settings: WordCountSettings) -> System:
    """Counts the words of the question."""
    text = question.text
    if settings.translated:
        text = expect((yield Translate(text=text)), Translated).text
    counted = expect((yield Count(text=text)), Counted)
    return Answer(text=str(counted.words))


SPEC = SystemSpec(
    name="word-count",
    version=1,
    title="Word count",
    settings=WordCountSettings,
    open=word_count,
    needs=lambda settings: Needs(engines=(TRANSLATOR,) if settings.translated else ()),
)
