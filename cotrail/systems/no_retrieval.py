"""NoR: the reader without any retrieval, by what the model knows (IRCoT, section 4.1)."""

from msgspec import Struct

from cotrail.core.demonstrations import Shots
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.systems.parts.prompting import PromptSettings, shown
from cotrail.systems.parts.reading import ReaderSettings, read_answer
from cotrail.systems.parts.rules import StepBound, released_reading
from cotrail.systems.spec import Needs, SystemSpec, description


class NoRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NoR: the reader alone."""

    reading: ReaderSettings = ReaderSettings()
    prompting: PromptSettings = PromptSettings()


def no_retrieval(question: Question, shots: Shots, settings: NoRetrievalSettings) -> System:
    """Ask the model at once."""
    answer = yield from read_answer(question, shown(question, ()), shots, settings.reading, settings.prompting)
    return Answer(text=answer)


def run_needs(settings: NoRetrievalSettings) -> Needs:
    """A reader."""
    return Needs(forms=settings.reading.forms)


def step_bounds(question: Question, settings: NoRetrievalSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    return settings.reading.step_bounds()


SPEC = SystemSpec(
    **description("no-retrieval"),
    settings=NoRetrievalSettings,
    open=no_retrieval,
    needs=run_needs,
    released=released_reading,
    step_bounds=step_bounds,
)
SPECS = (SPEC,)
