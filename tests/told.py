"""Systems under a model that is told what to write, call by call: for transcripts written by hand."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.core.actions.generate import Prompted
from cotrail.core.history import Finished
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import Paragraph
from cotrail.core.results import Generated
from cotrail.core.system import Action, Answer, System
from cotrail.engines.language_models.scripted import ScriptedModel
from tests.replay.driving import MadeUp, live, replayed
from tests.unit.test_encoding import reopened

Line = str | tuple[str, float]
"""What is written at a call: a text, and the probability of each of its tokens."""


class ToldModel:
    """Writes these texts, one a call, each cut as the call asks; a call too many is an error."""

    identity = "told@1"

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines: Iterator[Line] = iter(lines)

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`."""
        line = next(self._lines, None)
        assert line is not None, f"nothing is left to write for {request.prompt.render()}"
        text, confidence = (line, 0.99) if isinstance(line, str) else line
        answer = {
            "answer": text,
            "sentences": [text] * (len(request.prompt.written) + 1),
            "samples": [text],
            "messages": [text],
            "confidence": confidence,
        }
        return ScriptedModel({"name": "told", "questions": {}, "default": answer}).generate(request, cancellation)

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`."""
        raise AssertionError("no system that is told what to write asks how likely a text is")

    def interrupt(self) -> None:
        """See `LanguageModel`."""

    @property
    def left(self) -> list[Line]:
        """What wasn't asked for."""
        return list(self._lines)


class Ran(Struct, frozen=True):
    """What a system did: its answer, and all that it asked for in its order."""

    answer: Answer
    actions: tuple[Action, ...]

    @property
    def prompts(self) -> list[str]:
        """The prompts as the model was shown them."""
        return [action.prompt.render() for action in self.actions if isinstance(action, Prompted)]

    def asked(self, kind: type[Action]) -> list[Action]:
        """The actions of one kind."""
        return [action for action in self.actions if isinstance(action, kind)]


def ran(
    system: Callable[[], System],
    lines: Sequence[Line],
    found: Mapping[str, tuple[Paragraph, ...]] | None = None,
    world: type[MadeUp] = MadeUp,
) -> Ran:
    """What a system does where a model writes these lines and searches find these paragraphs by their queries.

    It has to be the same where each step is carried out by a process that knows nothing but the record, all that it
    asks for is read back as it was written down, and every line is asked for.
    """
    model = ToldModel(lines)
    trace, end = live(system(), world(model, found))
    assert model.left == []
    assert replayed(system, world(ToldModel(lines), found)) == (trace, end)
    assert [reopened(action) for action, _ in trace] == [action for action, _ in trace]
    assert isinstance(end, Finished), end
    return Ran(end.answer, tuple(action for action, _ in trace))
