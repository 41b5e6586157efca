"""NoR: the reader without any retrieval, by what the model knows (IRCoT, section 4.1)."""

from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.reading import Shots, read
from cotrail.systems.rethinking.settings import NoRetrievalSettings


def no_retrieval(question: Question, shots: Shots, settings: NoRetrievalSettings) -> System:
    """Asks the model at once."""
    answer = yield from read(question, (), shots, settings.reading, settings.prompting)
    return Answer(text=answer)
