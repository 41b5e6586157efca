"""The answer of a server to one generation, as it arrives."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cotrail.common.printable_text import StorablePieces
from cotrail.core.calls import GIVEN_IDS, Call
from cotrail.core.generation import Ended, ThoughtsKind, Until
from cotrail.core.ports.cancellation import Listener
from cotrail.core.results import MOST_CHARACTERS, Generated
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.event_loop import Calls
from cotrail.engines.language_models.served.protocols.delta import AnswerReader, Delta, Finish, encoded
from cotrail.engines.language_models.stop_conditions import GrowingText, kept, stop_condition, why_ended
from cotrail.engines.language_models.thinking import Thinking, Thought, Unframed, shown_thought
from cotrail.engines.language_models.thoughts import ThoughtSplitter
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import BlockedError, TransientStepError, UnrecordableError


class ServerStream:
    """Takes the server's events until the generation is complete; thoughts are no part of its text.

    White space before the first word of a new chat message is layout and not part of the text, unless the text is asked
    for verbatim. A completion that begins with a line break has ended its line; a chat message that does hasn't.

    reader: of the server's protocol.
    opens: whether the text opens a chat message.
    echo: what the server may repeat before it continues, which is no part of the text either.
    knows_stop: whether the server was given the stop strings, which then don't stand in its text.
    splitter: tells thoughts from text where the model writes both into one field.
    verbatim: whether the text is as the server wrote it, also where that framed it; see `Unframed`.
    reads_on: how many more characters are read at most once the part that was asked for is complete, to learn what the
        whole message cost.
    listener: see `Cancellation`.
    was_cut: whether the message reached its most tokens, maybe behind the part that was asked for.
    counts: None where the server didn't report them; then a piece usually is one token.
    events: the text of each event, and the log probabilities that the server reported with it, or None.
    """

    def __init__(
        self,
        reader: AnswerReader,
        until: Until,
        stop: tuple[str, ...] = (),
        *,
        opens: bool = False,
        echo: str = "",
        knows_stop: bool = False,
        splitter: ThoughtSplitter | None = None,
        verbatim: bool = False,
        reads_on: int = 0,
        listener: Listener | None = None,
    ) -> None:
        self.reader = reader
        self._written = GrowingText()
        self._thought = GrowingText()
        self._text_pieces, self._thought_pieces = StorablePieces(), StorablePieces()
        self.pieces = 0
        self.counts: TokenCounts | None = None
        self.events: list[tuple[str, Any]] = []
        self.served_by = ""
        self.was_cut = False
        self._until = until
        self._stop = stop
        self._knows_stop = knows_stop
        self._strips = opens and until != "stop"
        self._begun = not self._strips
        self._echo = echo
        self._echoed = GrowingText()
        self._calls = Calls()
        self._finish: Finish | None = None
        self._ended = False
        self._enough = stop_condition(until, stop)
        self._splitter = splitter
        self._unframed = None if verbatim else Unframed(stop)
        self._reads_on = reads_on
        self._listener = listener
        self._is_enough = False
        self._behind = GrowingText()

    def take(self, data: str) -> bool:
        """Takes an event; returns True once the part that was asked for is complete, and no more is to be read.

        Raises Refused, TransientStepError.
        """
        self._is_enough = self._add(self.reader.read(data)) or self._is_enough
        if self._listener:
            self._listener(self.kept() if self._is_enough else self._shown, self.thoughts)
        if self._is_enough:
            self._reads_on -= len(data)
        # Once the text has ended, only its token counts are still to come.
        return self._is_enough and self._reads_on < 0 and self._finish is None

    def take_whole(self, answer: Mapping[str, Any]) -> None:
        """Takes an answer that is no stream; raises as `take` does."""
        self._add(self.reader.whole(answer))
        self._ended = True

    def check(self) -> None:
        """Raises TransientStepError where the server disconnected before it was done."""
        if not self._ended:
            raise TransientStepError(f"the server broke off after {self.text!r}")

    @property
    def text(self) -> str:
        """What was written so far, without thoughts."""
        return self._written.text

    @property
    def text_read(self) -> str:
        """The text with what was read behind it (`reads_on`)."""
        return self.text + self._behind.text

    @property
    def thoughts(self) -> str:
        """What was thought, in fields of its own or between marks."""
        between_marks = self._splitter.thoughts if self._splitter else ""
        return "\n\n".join(filter(None, (self._thought.text.strip(), between_marks)))

    @property
    def between_marks(self) -> bool:
        """Return whether thoughts stood in the text."""
        return self._splitter is not None and self._splitter.met

    def kept(self) -> str:
        return kept(self._shown, self._until, self._stop)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tools that the model called; none where the text ended otherwise, since they may then not be whole."""
        return self._calls.whole() if self.ending()[0] == "calls" else ()

    @property
    def logprobs(self) -> Any:
        """The first log probabilities that the server reported, None where it reported none."""
        return next((logprobs for _, logprobs in self.events if logprobs), None)

    def ending(self) -> tuple[Ended, str]:
        """Why the text ended, and before which stop string, as in `Generated`.

        Servers other than vLLM's don't say whether the model ended the text or a stop string that they were given; the
        latter is assumed.
        """
        if self._finish == "refused":
            return "refused", ""
        return why_ended(self._shown, self._until, self._stop, self._otherwise)

    @property
    def _otherwise(self) -> Ended:
        """Why it ended if not by what was asked for."""
        if self._finish == "length":
            return "length"
        if self._calls.whole():
            return "calls"
        return "until" if self._knows_stop and self._finish in (None, "done", "stop") else "end"

    @property
    def _shown(self) -> str:
        return self.text.lstrip() if self._strips else self.text

    def _add(self, delta: Delta) -> bool:
        self.counts = delta.counts or self.counts
        self.served_by = delta.served_by or self.served_by
        self.was_cut = self.was_cut or delta.finish == "length"
        self._thought.add(self._thought_pieces.take(delta.thought))
        for call in delta.calls:
            self._calls.take(call)
        said = self._text_pieces.take(delta.text or "")
        piece = self._split(self._without_echo(said, is_last=delta.finish is not None), delta)
        if self._splitter and self._splitter.takes_back:
            self._begin_again()
        if self._is_enough:
            return self._read_behind(piece, delta)
        if delta.text is not None:
            self.events.append((piece, delta.logprobs))
        self._written.add(piece)
        self._check_size()
        self.pieces += bool(delta.text or delta.thought)
        if not self._begun:
            piece = piece.lstrip()
            self._begun = bool(piece)
        enough = self._enough(piece)
        # A refusal stays one, whatever later events give as the end.
        if self._finish != "refused":
            self._finish = delta.finish or self._finish
        self._ended = self._ended or enough or delta.ended
        return enough

    def _read_behind(self, piece: str, delta: Delta) -> bool:
        """Takes what stands behind the part that was asked for, which no result has.

        A provider that refuses there takes back what it wrote before too.
        """
        self._finish = "refused" if delta.finish == "refused" else self._finish
        self._behind.add(piece)
        self.pieces += bool(piece)
        self._check_size()
        self._ended = self._ended or delta.ended
        return True

    def _split(self, piece: str, delta: Delta) -> str:
        """What of a piece, and of those that were held back, is text."""
        ends = delta.finish is not None or (delta.ended and self._finish is None)
        if self._splitter:
            piece = self._splitter.feed(piece)
            piece += self._splitter.end(cut=delta.finish == "length") if ends else ""
        if self._unframed:
            piece = self._unframed.feed(piece)
            piece += self._unframed.end() if ends else ""
        return piece

    def _begin_again(self) -> None:
        """Drops the text so far, which was still a thought."""
        self._written, self._behind, self.events = GrowingText(), GrowingText(), []
        self._enough = stop_condition(self._until, self._stop)
        self._begun, self._is_enough = not self._strips, False

    def _check_size(self) -> None:
        written = self._written.characters + self._behind.characters + self._thought.characters + self._calls.characters
        if written + (self._splitter.characters if self._splitter else 0) > MOST_CHARACTERS:
            raise UnrecordableError(
                f"the server wrote more than {MOST_CHARACTERS:,} characters; look at what it writes"
            )

    def _without_echo(self, piece: str, *, is_last: bool) -> str:
        if not self._echo:
            return piece
        before = self._echoed.characters
        self._echoed.add(piece)
        if not is_last and self._echoed.characters < len(self._echo) and self._echo.startswith(piece, before):
            return ""
        piece, self._echo = self._echoed.text.removeprefix(self._echo), ""
        return piece


# Thoughts of a served model: what is recorded of them, and how a table that doesn't know of them is found out.


def thought_of(thinking: Thinking, stream: ServerStream, counts: TokenCounts, calls: Sequence[Call]) -> Thought:
    """What a model thought, and the ids of the tools that it called, behind which its thoughts may be wanted back."""
    text = stream.thoughts
    handed_back = thinking.takes_back(has_calls=bool(calls))
    carried = stream.reader.carried if handed_back else {}
    if handed_back and stream.between_marks and text:
        carried = carried | {"reasoning_content": text}
    if any(call.id for call in calls):
        carried = carried | {GIVEN_IDS: [call.id for call in calls]}
    return Thought(text=text, kind=_kind(thinking, stream, counts), carried=encoded(carried) if carried else "")


def counted(stream: ServerStream, counts: TokenCounts) -> TokenCounts:
    """The counts with those of thoughts, which servers without a count of their own are estimated to have written.

    Of all tokens that were written, thoughts have had the share that they have of the characters. A summary says
    nothing of how many tokens the thought took.
    """
    thought = len(stream.thoughts)
    if counts.thought_tokens or not thought or (not stream.between_marks and stream.reader.thoughts_are != "whole"):
        return counts
    others = len(stream.text_read) + sum(len(call.name) + len(call.arguments) for call in stream.calls)
    return replace(
        counts, thought_tokens=counts.generated_tokens * thought // (thought + others), thought_estimated=True
    )


def _kind(thinking: Thinking, stream: ServerStream, counts: TokenCounts) -> ThoughtsKind:
    if stream.thoughts:
        return "whole" if stream.between_marks else stream.reader.thoughts_are
    # All tokens went somewhere, and not into a text.
    lost = not stream.text.strip() and (thinking.thinks == "hidden" or stream.ending()[0] == "length")
    return "hidden" if counts.thought_tokens or lost else ""


def check_marks(endpoint: Endpoint, text: str, result: Generated) -> None:
    """Raises BlockedError, with the result, where a text has thoughts in it that the model's table doesn't know of."""
    if endpoint.thinks in ("tags", "inside", "no"):
        return
    if shown := shown_thought(text):
        raise BlockedError(_unknown(endpoint, *shown), result)


def _unknown(endpoint: Endpoint, mark: str, thinks: str) -> str:
    return (
        f"the model {endpoint.model} writes its thoughts into its text ({mark}), which its table in the list of models "
        f'does not say: set thinks = "{thinks}" and thought_tokens there ("no" where this is no thought), start the '
        "workers again and submit the run again"
    )
