"""The systems, driven by hand, held against section 3 of the IRCoT paper and its authors' released code."""

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations, Shots
from cotrail.core.history import Finished, Next, Recorded
from cotrail.core.prompts import Prompt, Shown
from cotrail.core.questions import Hit, Paragraph, Question
from cotrail.core.replay import advance
from cotrail.core.results import Failure, Generated, Result, Retrieved
from cotrail.core.system import Action, Answer, StepFailed, System, Together, expect
from cotrail.errors import UnknownNameError, UnknownVersionError
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.ircot import IRCoTSettings, NoRetrievalSettings, OneStepSettings, ircot, no_retrieval, one_step
from cotrail.systems.parts.reading import Reader, ReaderSettings
from cotrail.systems.parts.retrieval import RetrievalSettings
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import Needs, SystemSpec, find_spec
from tests.cases import each_case

QUESTION = Question(id="q1", text="Where is the bridge that Ada built ?")
QUERY = "the bridge that Ada built ?"
SHOTS = {
    form: Demonstrations(items=(Demonstration(id=form, paragraphs=(), question="Is it?", answer=form),))
    for form in AnswerForm
}
RETRIEVAL = RetrievalSettings()


def words_shown(prompt: Prompt) -> int | None:
    """How many words of each paragraph a prompt shows."""
    [words] = {piece.words for piece in prompt.pieces if isinstance(piece, Shown)}
    return words


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(id=f"id of {title}", title=title, text=text)


PEOPLE = tuple(paragraph(letter * 9, letter * 30) for letter in "abcdef")


def found(*paragraphs: Paragraph) -> Retrieved:
    hits = (Hit(paragraph=each, rank=rank, score=9 / rank) for rank, each in enumerate(paragraphs, start=1))
    return Retrieved(hits=tuple(hits))


def wrote(text: str) -> Generated:
    return Generated(
        text=text,
        raw=f"{text} And more.",
        demonstrations=1,
        paragraphs=0,
        prompt_digest="",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        generated_tokens=1,
    )


class Hand:
    """Drives a system step by step, and keeps what it asked for."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.asked: list[Action] = []
        self.answer: Answer | None = None
        self._take(next(system))

    @property
    def last(self) -> Action:
        return self.asked[-1]

    @property
    def read(self) -> Read:
        assert isinstance(self.last, Read)
        return self.last

    @property
    def shape(self) -> list[str]:
        return [type(action).__name__ for action in self.asked]

    @property
    def queries(self) -> list[str]:
        return [action.query for action in self.asked if isinstance(action, Retrieve)]

    def reply(self, *results: Result | tuple[Result, ...]) -> Answer | None:
        for result in results:
            try:
                self._take(self._system.send(result))
            except StopIteration as stop:
                self.answer = stop.value
        return self.answer

    def fail(self, kind: str) -> None:
        self._take(self._system.throw(StepFailed(Failure(type=kind, message="it says"))))

    def _take(self, yielded: object) -> None:
        for action in yielded.actions if isinstance(yielded, Together) else (yielded,):
            assert isinstance(action, Action)
            self.asked.append(action)


def open_ircot(text: str = QUESTION.text, settings: IRCoTSettings | None = None) -> Hand:
    return Hand(ircot(Question(id="q1", text=text), SHOTS, settings or IRCoTSettings()))


def chain(*sentences: str) -> list[Retrieved | Generated]:
    """The replies to a first search and to a chain of these sentences, with nothing found."""
    replies: list[Retrieved | Generated] = [found()]
    for sentence in sentences:
        replies += [wrote(sentence), found()]
    return replies[:-1]


# IRCoT's loop


def test_ircot_retrieves_and_reasons_in_turn_until_a_sentence_states_the_answer() -> None:
    hand = open_ircot()
    assert hand.last == Retrieve(query=QUERY, count=4)

    hand.reply(found(PEOPLE[0], PEOPLE[1]))
    assert isinstance(hand.last, Reason)
    assert (hand.last.max_tokens, hand.last.until) == (200, "sentence")
    assert hand.last.prompt.demonstrations == SHOTS[AnswerForm.COT]
    assert hand.last.prompt.paragraphs == PEOPLE[:2]
    assert (hand.last.prompt.question, hand.last.prompt.written) == (QUESTION.text, ())

    hand.reply(wrote("Ada built the Long Bridge."))
    assert hand.last == Retrieve(query="Ada built the Long Bridge.", count=4)

    hand.reply(found(PEOPLE[2], PEOPLE[0]))
    assert isinstance(hand.last, Reason)
    assert hand.last.prompt.paragraphs == PEOPLE[:3]
    assert hand.last.prompt.written == ("Ada built the Long Bridge.",)

    hand.reply(wrote("So the answer is: Rome."))
    assert (hand.read.max_tokens, hand.read.until) == (64, "line")
    assert hand.read.prompt.demonstrations == SHOTS[AnswerForm.DIRECT]
    assert hand.read.prompt.paragraphs == PEOPLE[:3]
    assert (hand.read.prompt.question, hand.read.prompt.written) == (QUESTION.text, ())

    assert hand.reply(wrote("Paris.")) == Answer(
        text="Paris", sentences=("Ada built the Long Bridge.", "So the answer is: Rome."), paragraphs=PEOPLE[:3]
    )
    assert hand.shape == ["Retrieve", "Reason", "Retrieve", "Reason", "Read"]


def test_what_says_where_sentences_end_goes_with_every_sentence_and_not_with_the_reader() -> None:
    hand = open_ircot(settings=IRCoTSettings(splitter="en_core_web_sm@3.8.0"))
    hand.reply(*chain("Ada built the Long Bridge.", "So the answer is: Rome."))
    sentences = [action for action in hand.asked if isinstance(action, Reason)]
    assert [each.splitter for each in sentences] == ["en_core_web_sm@3.8.0"] * 2
    assert isinstance(hand.last, Read)


def test_an_answer_in_the_first_sentence_ends_the_loop_without_another_search() -> None:
    hand = open_ircot()
    hand.reply(*chain("So the answer is: Rome."))
    assert hand.shape == ["Retrieve", "Reason", "Read"]


@each_case("sentence", ["The answer is Rome.", "So the answer is: Rome", "Thus, the answer is: a. b."])
def test_a_sentence_that_states_the_answer_ends_the_loop(sentence: str) -> None:
    hand = open_ircot()
    hand.reply(*chain(sentence))
    assert isinstance(hand.last, Read)


@each_case("sentence", ["Answer is: Rome.", "So the answer is:Rome.", "So The Answer Is: Rome."])
def test_any_other_sentence_goes_on(sentence: str) -> None:
    hand = open_ircot()
    hand.reply(*chain(sentence))
    assert isinstance(hand.last, Retrieve)


@each_case(("settings", "limit"), [(None, 8), (IRCoTSettings(max_sentences=10), 10)])
def test_the_loop_ends_at_the_step_limit(settings: IRCoTSettings | None, limit: int) -> None:
    hand = open_ircot(settings=settings)
    sentences = tuple(f"It is {number}." for number in range(limit))
    hand.reply(*chain(*sentences))
    assert hand.shape == ["Retrieve", "Reason"] * limit + ["Read"]
    answer = hand.reply(wrote("Rome"))
    assert answer == Answer(text="Rome", sentences=sentences, limit="sentences")


def test_every_search_asks_for_k_paragraphs() -> None:
    settings = IRCoTSettings(retrieval=RetrievalSettings(retrieval_count=6))
    hand = open_ircot(settings=settings)
    hand.reply(*chain("One.", "Two."))
    assert [action.count for action in hand.asked if isinstance(action, Retrieve)] == [6, 6, 6]


@each_case("recorded_before", [False, True])
def test_an_empty_sentence_ends_the_loop_and_the_reader_goes_on(*, recorded_before: bool) -> None:
    hand = open_ircot()
    hand.reply(found(PEOPLE[0]), wrote("It is long."), found(PEOPLE[1]))
    if recorded_before:
        hand.fail("EmptyGenerationError")
    else:
        hand.reply(wrote(""))
    assert hand.shape == ["Retrieve", "Reason", "Retrieve", "Reason", "Read"]
    assert hand.reply(wrote("Rome")) == Answer(text="Rome", sentences=("It is long.",), paragraphs=PEOPLE[:2])


@each_case("kind", ["PromptTooLongError", "StepError", "TransientStepError"])
def test_any_other_failure_of_a_sentence_fails_the_question(kind: str) -> None:
    hand = open_ircot()
    hand.reply(found())
    with pytest.raises(StepFailed, match=kind):
        hand.fail(kind)


@each_case("replies", [[], chain("So the answer is: Rome.")])
@each_case("kind", ["StepError", "EmptyGenerationError"])
def test_a_search_or_a_reader_that_fails_fails_the_question(replies: list[Retrieved | Generated], kind: str) -> None:
    hand = open_ircot()
    hand.reply(*replies)
    with pytest.raises(StepFailed):
        hand.fail(kind)


def test_the_words_are_dropped_from_sentences_too() -> None:
    hand = open_ircot()
    hand.reply(*chain("Ada is who built it."))
    assert hand.queries == [QUERY, "Ada built it."]


def test_after_a_reasoning_sentence_the_same_query_is_asked_again() -> None:
    hand = open_ircot()
    hand.reply(*chain("So it is.", "Ada built it.", "Thus it is.", "Rome has it."))
    assert hand.queries == [QUERY, QUERY, "Ada built it.", "Ada built it.", "Rome has it."]


def test_a_full_collection_still_searches_and_adds_nothing() -> None:
    hand = open_ircot(settings=IRCoTSettings(retrieval=RetrievalSettings(max_paragraphs=2)))
    hand.reply(found(*PEOPLE[:3]), wrote("One."), found(*PEOPLE[3:6]), wrote("So the answer is: two."))
    assert hand.shape == ["Retrieve", "Reason", "Retrieve", "Reason", "Read"]
    assert hand.read.prompt.paragraphs == PEOPLE[:2]


def test_of_a_kept_paragraph_350_words_stand_in_every_prompt() -> None:
    long = paragraph("Long", " ".join(f"w{n}" for n in range(600)))
    hand = open_ircot()
    hand.reply(found(long))
    assert isinstance(hand.last, Reason)
    assert words_shown(hand.last.prompt) == 350
    assert "w349\n" in hand.last.prompt.render()
    assert "w350" not in hand.last.prompt.render()
    hand.reply(wrote("So the answer is: one."))
    assert words_shown(hand.read.prompt) == 350
    assert hand.reply(wrote("one")) == Answer(text="one", sentences=("So the answer is: one.",), paragraphs=(long,))


def test_another_limit_of_words_holds_for_sentences_and_readers_alike() -> None:
    hand = open_ircot(settings=IRCoTSettings(retrieval=RetrievalSettings(prompt_paragraph_words=2)))
    hand.reply(found(*PEOPLE[:1]), wrote("So the answer is: one."))
    assert [words_shown(action.prompt) for action in hand.asked if isinstance(action, Reason | Read)] == [2, 2]
    settings = OneStepSettings(retrieval=RetrievalSettings(prompt_paragraph_words=3))
    hand = Hand(one_step(QUESTION, SHOTS, settings))
    hand.reply(found(*PEOPLE[:1]))
    assert words_shown(hand.read.prompt) == 3


# Readers, and the systems without a loop


def answered(reader: Reader, text: str) -> str:
    hand = Hand(no_retrieval(QUESTION, SHOTS, NoRetrievalSettings(reading=ReaderSettings(reader=reader))))
    answer = hand.reply(wrote(text))
    assert answer is not None
    return answer.text


@each_case(("text", "answer"), [("Rome", "Rome"), ("Rome.", "Rome"), ("Operation M.D..", "Operation M.D.")])
def test_the_direct_reader_s_text_is_the_answer(text: str, answer: str) -> None:
    assert answered("direct", text) == answer


@each_case(
    ("text", "answer"),
    [
        ("Ada built it. So the answer is: Rome.", "Rome"),
        ("Ada built it. So the answer is Rome", "Rome"),
        ("It is the Operation M.D. So the answer is: M.D..", "M.D."),
        ("So the answer is: a. No, the answer is: b.", "b"),
        ("Ada built it in Rome.", "Ada built it in Rome."),
        ("So the answer is: .", "So the answer is: ."),
    ],
)
def test_the_cot_reader_s_answer_is_what_its_chain_states_or_all_of_it(text: str, answer: str) -> None:
    assert answered("cot", text) == answer


@each_case(("reader", "form", "tokens"), [("direct", "direct", 64), ("cot", "cot", 200)])
def test_each_reader_has_its_demonstrations_and_its_length(reader: Reader, form: str, tokens: int) -> None:
    hand = open_ircot(settings=IRCoTSettings(reading=ReaderSettings(reader=reader)))
    hand.reply(found(PEOPLE[0]), wrote("So the answer is: Rome."))
    assert hand.read.prompt.demonstrations == SHOTS[AnswerForm(form)]
    assert (hand.read.max_tokens, hand.read.until, hand.read.prompt.written) == (tokens, "line", ())


@each_case("reader", ["direct", "cot"])
def test_a_reader_that_writes_nothing_has_answered_with_the_empty_text(reader: Reader) -> None:
    assert answered(reader, "") == ""
    hand = open_ircot(settings=IRCoTSettings(reading=ReaderSettings(reader=reader)))
    sentence = "So the answer is: Rome."
    assert hand.reply(found(), wrote(sentence), wrote("")) == Answer(text="", sentences=(sentence,))


def test_one_step_retrieves_once_with_the_question_and_reads() -> None:
    hand = Hand(one_step(QUESTION, SHOTS, OneStepSettings()))
    assert hand.last == Retrieve(query=QUERY, count=15)
    hand.reply(found(*PEOPLE[:2], PEOPLE[0]))
    assert hand.read.prompt.paragraphs == PEOPLE[:2]
    assert hand.reply(wrote("Rome")) == Answer(text="Rome", paragraphs=PEOPLE[:2])
    assert hand.shape == ["Retrieve", "Read"]


def test_no_retrieval_reads_at_once() -> None:
    hand = Hand(no_retrieval(QUESTION, SHOTS, NoRetrievalSettings()))
    assert hand.read.prompt.render() == "Q: Is it?\nA: direct\n\n\nQ: Where is the bridge that Ada built ?\nA:"
    assert hand.reply(wrote("Rome")) == Answer(text="Rome")
    assert hand.shape == ["Read"]


RELEASED = ReaderSettings(answers="released")


def test_by_the_released_code_an_empty_answer_ends_the_chain_and_is_the_answer() -> None:
    hand = open_ircot(settings=IRCoTSettings(reading=RELEASED))
    hand.reply(*chain("So the answer is: ."))
    assert isinstance(hand.last, Read)
    hand = open_ircot()
    hand.reply(*chain("So the answer is: ."))
    assert isinstance(hand.last, Retrieve)
    reading = ReaderSettings(reader="none", answers="released")
    answer = open_ircot(settings=IRCoTSettings(reading=reading)).reply(*chain("It is.", "So the answer is: ."))
    assert answer is not None
    assert answer.text == ""


def test_by_the_released_code_a_direct_readers_full_stop_stays_and_a_list_is_read() -> None:
    for text, answer in (("Rome.", "Rome."), ('["Rome"]', "Rome")):
        hand = Hand(no_retrieval(QUESTION, SHOTS, NoRetrievalSettings(reading=RELEASED)))
        assert hand.reply(wrote(text)) == Answer(text=answer)


@each_case("distinct", [False, True])
def test_searches_say_whether_equal_texts_count_once(*, distinct: bool) -> None:
    retrieval = RetrievalSettings(distinct_texts=distinct)
    hand = open_ircot(settings=IRCoTSettings(retrieval=retrieval))
    hand.reply(*chain("One."), found())
    once = Hand(one_step(QUESTION, SHOTS, OneStepSettings(retrieval=retrieval)))
    searches = [action for action in [*hand.asked, *once.asked] if isinstance(action, Retrieve)]
    assert [action.distinct for action in searches] == [distinct] * 3


# The registry


class MadeUpSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    count: int = 1


def made_up(question: Question, shots: Shots, settings: MadeUpSettings) -> System:
    paragraphs = expect((yield Retrieve(query=question.text, count=settings.count)), Retrieved).paragraphs
    return Answer(text=paragraphs[0].title, paragraphs=paragraphs)


MADE_UP = SystemSpec(
    name="made-up", version=1, title="MadeUp", settings=MadeUpSettings, open=made_up, needs=lambda _: Needs(corpus=True)
)


def test_a_system_is_found_by_name_and_version() -> None:
    assert {spec.name: find_system(spec.name) for spec in SYSTEMS} == {spec.name: spec for spec in SYSTEMS}
    assert find_system("ircot", 1).open is ircot


def test_without_a_version_the_newest_is_found_and_the_old_one_stays_within_reach() -> None:
    new = replace(MADE_UP, version=2)
    old = MADE_UP
    assert find_spec((new, old), "made-up") is new
    assert find_spec((old, new), "made-up") is new
    assert find_spec((old, new), "made-up", 1) is old


def test_a_made_up_system_is_found_opened_and_replayed_by_its_spec_alone() -> None:
    spec = find_spec((*SYSTEMS, MADE_UP), "made-up")
    settings = msgspec.convert({"count": 2}, spec.settings)
    history: list[Recorded] = []
    binding = Binding(model="m", profile="deterministic", temperature=0.0, seed=0, corpora={"c": "c"})

    def opened() -> System:
        return spec.open(QUESTION, SHOTS, settings)

    following = advance(opened, history, binding)
    assert isinstance(following, Next)
    (step,) = following.steps
    assert step.action == Retrieve(query=QUESTION.text, count=2)
    history.append(Recorded(kind="retrieve", fingerprint=step.fingerprint, outcome=found(PEOPLE[0])))
    answer = Answer(text=PEOPLE[0].title, paragraphs=PEOPLE[:1])
    assert advance(opened, history, binding) == Finished(answer)
    assert spec.needs(settings) == Needs(corpus=True)
    assert spec.rule_settings("released", instructed=False) == {}


def test_an_unknown_name_says_which_one_was_probably_meant() -> None:
    with pytest.raises(UnknownNameError, match=r"no system 'irchain' \(did you mean searchain\?\)"):
        find_system("irchain")


def test_an_unknown_version_says_which_workers_are_needed() -> None:
    with pytest.raises(UnknownVersionError, match="pins ircot version 99, and this worker has version 1; start"):
        find_system("ircot", 99)


def test_systems_that_weigh_chains_give_details_of_their_answers() -> None:
    assert {spec.name for spec in SYSTEMS if spec.details is Weighing} == {"self-consistency", "rethinking"}


def test_no_two_systems_go_by_the_same_name_and_version() -> None:
    assert len({(spec.name, spec.version) for spec in SYSTEMS}) == len(SYSTEMS)
