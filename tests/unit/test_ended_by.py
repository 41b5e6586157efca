"""What ended a question: its system's own end, one of its limits, or a failure."""

from msgspec.structs import replace

from cotrail.core.history import Failed, Finished, ended_by
from cotrail.core.results import Failure
from cotrail.core.system import Answer
from cotrail.systems.ircot import IRCoTSettings, ircot
from cotrail.systems.parts.reading import ReaderSettings
from tests.cases import each_case
from tests.unit.test_systems import PEOPLE, QUESTION, SHOTS, Hand, found, wrote

NOTHING_STATED = "Ada built a bridge."


def chained(last: str, settings: IRCoTSettings) -> Answer:
    hand = Hand(ircot(QUESTION, SHOTS, settings))
    hand.reply(found(*PEOPLE), wrote(NOTHING_STATED), found(), wrote(last))
    answer = hand.answer or hand.reply(wrote("Grayle."))
    assert answer
    return answer


@each_case("reader", ["direct", "none"])
@each_case(
    ("last", "end"),
    [("So the answer is: Grayle.", "answer"), ("", "answer"), ("It stands somewhere.", "limit: sentences")],
)
def test_a_chain_that_states_no_answer_ends_at_its_limit(reader: str, last: str, end: str) -> None:
    reading = replace(ReaderSettings(), reader=reader)
    assert ended_by(Finished(chained(last, IRCoTSettings(max_sentences=2, reading=reading)))) == end


def test_a_failure_is_named_by_its_class() -> None:
    assert (
        ended_by(Failed(Failure(type="UnansweredError", message="nothing but thought"))) == "failure: UnansweredError"
    )
