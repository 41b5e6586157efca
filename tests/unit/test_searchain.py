"""Search-in-the-Chain, driven through the replay driver, held against its paper and docs/searchain.md."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Extract
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Shots, whole_prompts
from cotrail.core.history import Finished
from cotrail.core.ports.encoders import DUPLICATE_RATER, EXTRACTOR
from cotrail.core.questions import Paragraph, Question
from cotrail.core.results import Embedded, Extracted, Generated, Rated, Result
from cotrail.core.system import Action, Answer, Together
from cotrail.systems.registry import find_system
from cotrail.systems.searchain.chain_of_query import read_chain
from cotrail.systems.searchain.prompts import EXAMPLES, EXAMPLES_WITHOUT_RETRIEVAL, SearChainSettings
from cotrail.systems.searchain.tree import Mark, Tree
from cotrail.systems.spec import Needs
from tests.cases import each_case
from tests.replay.driving import Trace, found_paragraphs, live, replayed

SPEC = find_system("searchain")

DINOSAUR = Question(
    id="q", text='What kind of dinosaur does Raymond Ochoa voice in the Pixar film "The Good Dinosaur"?'
)
WHO, ROLE, KIND = (
    "Who is Raymond Ochoa?",
    'Which role has Raymond Ochoa in "The Good Dinosaur"?',
    "What kind of dinosaur is Arlo?",
)
OCHOA = Paragraph(id="1", title="Raymond Ochoa", text="Raymond Ochoa is an American child actor and voice actor.")
FILM = Paragraph(id="2", title="The Good Dinosaur", text="Raymond Ochoa played, Arlo, in the Pixar film.")
ARLO = Paragraph(id="3", title="Arlo", text="A timid Apatosaurus named Arlo (Ochoa).")
DOCUMENTS = {WHO: OCHOA, ROLE: FILM, KIND: ARLO}
READ = {WHO: "an American child actor and voice actor", ROLE: "Arlo", KIND: "Apatosaurus"}

ACTOR, AS_ARLO, APATOSAURUS = (
    "Raymond Ochoa is an American child actor and voice actor.",
    "He played Arlo.",
    "Arlo is an Apatosaurus.",
)
RIGHT = f"""[Query 1]: {WHO}
[Answer 1]: {ACTOR}
[Query 2]: {ROLE}
[Answer 2]: {AS_ARLO}
[Query 3]: {KIND}
[Answer 3]: {APATOSAURUS}
[Final Content]: He is Arlo. So the answer is Apatosaurus."""
FINAL = (
    "[Final Content]: Raymond Ochoa is an American child actor and voice actor [1]. He has played Arlo [2]. Arlo is an "
    "Apatosaurus [3]. So the final answer is Apatosaurus."
)
WRONG = RIGHT.replace(AS_ARLO, "He played Spot.").replace(APATOSAURUS, "Spot is a human.")
AFTER_ROLE = f"""[Query 1]: {ROLE}
[Answer 1]: {AS_ARLO}
[Query 2]: {KIND}
[Answer 2]: {APATOSAURUS}
[Final Content]: So the answer is Apatosaurus."""
UNKNOWN = f"[Query 1]: {WHO}\n[Answer 1]: {ACTOR}\n[Unsolved Query]: {ROLE}"


class World:
    """Messages in their order (the last one again and again), a document for a query, and what is read from it.

    sure: the probability of the tokens of each reading.
    """

    def __init__(
        self,
        *messages: str,
        documents: Mapping[str, Paragraph] = DOCUMENTS,
        read: Mapping[str, str] = READ,
        sure: float = 0.99,
    ) -> None:
        self.messages, self.documents, self.read, self.sure = messages, documents, read, sure

    def __call__(self, action: Action) -> Result:
        match action:
            case Retrieve():
                document = self.documents.get(action.query)
                return found_paragraphs(*([document] if document else []))
            case Extract():
                text = self.read.get(action.question, "")
                return Extracted(text=text, confidence=math.log(self.sure / (1 - self.sure)), start=0, end=len(text))
            case Rate():
                return Rated(scores=tuple(float(_words(action.text) <= _words(each)) for each in action.others))
            case Embed():
                first, *others = action.sentences
                alike = (1.0, *(float(_words(first) <= _words(each)) for each in others))
                return Embedded(similarities=(alike, *([(0.0,) * len(alike)] * len(others))))
        assert isinstance(action, Read | Reason)
        if isinstance(action, Read):
            text = self.read.get(action.prompt.question, "unanswerable")
            return wrote(text, tokens=((text, math.log(self.sure)),))
        # A conversation is append-only, so that its turns tell which message is next.
        place = sum(turn.role == "assistant" for turn in action.prompt.turns)
        return wrote(self.messages[min(place, len(self.messages) - 1)])


def _words(text: str) -> set[str]:
    return set(text.lower().split())


def wrote(text: str, tokens: tuple[tuple[str, float], ...] = ()) -> Generated:
    return Generated(
        text=text,
        raw=text,
        demonstrations=0,
        paragraphs=0,
        prompt_digest="",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        generated_tokens=1,
        ended="end",
        tokens=tokens,
    )


def run(world: World, shots: Shots | None = None, **settings: object) -> tuple[Trace, Answer]:
    chosen = SearChainSettings(**settings)  # type: ignore[arg-type]
    trace, ended = replayed(lambda: SPEC.open(DINOSAUR, shots or {}, chosen), world)
    assert isinstance(ended, Finished), ended
    return trace, ended.answer


def tree(answer: Answer) -> Tree:
    assert isinstance(answer.details, Tree)
    return answer.details


def queries(trace: Trace) -> list[str]:
    return [action.query for action, _ in trace if isinstance(action, Retrieve)]


def asked(trace: Trace) -> list[str]:
    """The last turn of each conversation that the model was asked to go on with."""
    return [action.prompt.turns[-1].text for action, _ in trace if isinstance(action, Reason)]


def sources(answer: Answer) -> list[str | None]:
    return [node.source for node in tree(answer).nodes]


def accepted(answer: Answer) -> list[tuple[str, str]]:
    return [(node.query, node.accepted) for node in map(tree(answer).nodes.__getitem__, tree(answer).path)]


# Figure 3: a chain that passes


def test_a_chain_that_retrieval_agrees_with_is_written_once_and_traced() -> None:
    trace, answer = run(World(RIGHT, FINAL))
    assert [type(action).__name__ for action, _ in trace] == ["Reason", *["Retrieve", "Read"] * 3, "Reason"]
    assert queries(trace) == [WHO, ROLE, KIND]
    assert all(action.count == 1 for action, _ in trace if isinstance(action, Retrieve))
    assert sources(answer) == ["model", "model", "model"]
    assert accepted(answer) == [(WHO, ACTOR), (ROLE, AS_ARLO), (KIND, APATOSAURUS)]
    assert answer.text == (
        "Raymond Ochoa is an American child actor and voice actor. He has played Arlo. Arlo is an Apatosaurus. So the "
        "final answer is Apatosaurus."
    )
    assert answer.paragraphs == (OCHOA, FILM, ARLO)
    assert tree(answer).stated == "Apatosaurus"
    assert tree(answer).rounds == 1


def test_the_marks_of_the_final_content_name_the_nodes_and_their_documents() -> None:
    _, answer = run(World(RIGHT, FINAL))
    assert tree(answer).marks == (
        Mark(text="Raymond Ochoa is an American child actor and voice actor", nodes=(0,)),
        Mark(text="He has played Arlo", nodes=(1,)),
        Mark(text="Arlo is an Apatosaurus", nodes=(2,)),
    )
    assert [node.paragraph for node in tree(answer).nodes] == [OCHOA.digest, FILM.digest, ARLO.digest]
    assert tree(answer).oddities == ()


def test_the_last_turn_shows_the_pairs_of_the_path_in_the_same_conversation() -> None:
    trace, _ = run(World(RIGHT, FINAL))
    first, last = (action.prompt for action, _ in trace if isinstance(action, Reason))
    assert last.turns[:1] == first.turns
    assert [turn.role for turn in last.turns] == ["user", "assistant", "user"]
    assert last.turns[1].text == RIGHT
    assert f"[Query 2]: {ROLE}\n[Answer 2]: {AS_ARLO}\n[Query 3]:" in last.turns[2].text


# Section 3.2: verification


def test_a_confident_reader_corrects_an_answer_and_ends_the_round() -> None:
    trace, answer = run(World(WRONG, AFTER_ROLE, FINAL))
    assert queries(trace) == [WHO, ROLE, KIND]
    assert f'the answer for "{ROLE}" should be "Arlo". You can change your answer and continue' in asked(trace)[1]
    assert asked(trace)[1].endswith("\nReference: The Good Dinosaur\nRaymond Ochoa played, Arlo, in the Pixar film.")
    assert f"[Question]: {DINOSAUR.text}" in asked(trace)[1]
    assert sources(answer) == ["model", "corrected", None, None, "model"]
    assert accepted(answer) == [(WHO, ACTOR), (ROLE, "Arlo"), (KIND, APATOSAURUS)]
    assert tree(answer).rounds == 2


def test_a_new_chain_is_a_branch_behind_the_node_that_was_corrected() -> None:
    _, answer = run(World(WRONG, AFTER_ROLE, FINAL))
    assert [(node.round, node.parent) for node in tree(answer).nodes] == [(1, None), (1, 0), (1, 1), (2, 1), (2, 3)]
    assert [node.duplicate for node in tree(answer).nodes] == [False, False, False, True, False]


@each_case(("sure", "corrected"), [(0.81, False), (0.83, True)])
def test_a_reader_corrects_only_above_theta(sure: float, *, corrected: bool) -> None:
    # The logit of 0.8176 is 1.5.
    _, answer = run(World(WRONG, AFTER_ROLE, FINAL, sure=sure))
    assert ("corrected" in sources(answer)) is corrected
    assert tree(answer).nodes[1].confidence == pytest.approx(math.log(sure / (1 - sure)))


@each_case("nothing", ["", "unanswerable", "Unanswerable.", "The", '""', "<think>"])
def test_a_reader_that_finds_nothing_never_corrects(nothing: str) -> None:
    _, answer = run(World(WRONG, FINAL, read={**READ, ROLE: nothing}), theta=-100)
    assert sources(answer)[1] == "model"


def test_the_node_stays_on_the_path_with_the_readers_answer_though_the_model_keeps_its_own() -> None:
    _, answer = run(World(WRONG, WRONG, FINAL))
    assert (ROLE, "Arlo") in accepted(answer)


def test_an_answer_that_is_missing_is_corrected() -> None:
    _, answer = run(World(RIGHT.replace(f"[Answer 2]: {AS_ARLO}\n", ""), AFTER_ROLE, FINAL))
    assert sources(answer)[1] == "corrected"


def test_a_long_answer_is_compared_with_its_document_by_rouge_l() -> None:
    # Six of eight words of the answer in order, of ten in the document: F = 2 * 6 / (8 + 10) = 0.67.
    documents, read = {WHO: OCHOA}, {WHO: "American child"}
    chain = f"[Query 1]: {WHO}\n[Answer 1]: Raymond Ochoa is an actor and voice actor."
    assert sources(run(World(chain, FINAL, documents=documents, read=read), answers="long")[1]) == ["model"]
    world = World(chain, FINAL, documents=documents, read=read)
    assert sources(run(world, questions="long-form", alpha=0.9)[1])[0] == "corrected"
    assert sources(run(world)[1])[0] == "corrected"


# Section 3.2: completion


def test_an_unsolved_query_is_completed_however_unsure_the_reader_is() -> None:
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, sure=0.01))
    assert f'the answer for "{ROLE}" should be "Arlo". You can give your answer and continue' in asked(trace)[1]
    assert sources(answer) == ["model", "completed", None, "model"]
    assert accepted(answer) == [(WHO, ACTOR), (ROLE, "Arlo"), (KIND, APATOSAURUS)]


def test_an_unsolved_query_without_an_answer_or_a_document_gets_feedback_too() -> None:
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, read={KIND: "Apatosaurus"}))
    assert "The Reference may have the answer" in asked(trace)[1]
    assert sources(answer)[:2] == ["model", "completed"]
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, documents={KIND: ARLO}))
    assert asked(trace)[1].startswith(f'No Reference was found for "{ROLE}".')
    assert sources(answer)[:2] == ["model", None]


def test_a_query_without_an_answer_counts_as_asked_and_is_on_the_path() -> None:
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL, read={KIND: "Apatosaurus"}))
    assert queries(trace) == [WHO, ROLE, KIND]
    assert accepted(answer) == [(WHO, ACTOR), (ROLE, ""), (KIND, APATOSAURUS)]
    assert tree(answer).nodes[2].duplicate
    # What the model wrote for it later, from the document that it was shown, stands in the last turn.
    assert f"[Query 2]: {ROLE}\n[Answer 2]: {AS_ARLO}\n[Query 3]:" in asked(trace)[-1]
    unanswered = RIGHT.replace(f"[Answer 2]: {AS_ARLO}\n", "")
    trace, answer = run(World(unanswered, FINAL, sure=0.5))
    assert tree(answer).path == (0, 1, 2)
    assert f"[Query 2]: {ROLE}\n[Answer 2]:\n[Query 3]:" in asked(trace)[-1]
    assert answer.sentences == (f"{WHO} {ACTOR}", ROLE, f"{KIND} {APATOSAURUS}")


def test_an_unsolved_query_is_never_skipped_as_a_duplicate() -> None:
    trace, answer = run(World(UNKNOWN, FINAL), rounds=3)
    assert queries(trace) == [WHO, ROLE]
    trace, answer = run(World(UNKNOWN), rounds=3)
    assert queries(trace) == [WHO, ROLE, ROLE, ROLE]
    assert sources(answer) == ["model", "completed", None, "completed", None, "completed"]
    assert accepted(answer) == [(WHO, ACTOR), (ROLE, "Arlo")]
    assert tree(answer).path == (0, 5)


# Algorithm 1: the loop


def test_there_are_five_chains_at_most_and_the_last_feedback_is_not_sent() -> None:
    trace, answer = run(World(UNKNOWN))
    assert tree(answer).rounds == 5
    assert len(asked(trace)) == 6
    *_, last = (action.prompt for action, _ in trace if isinstance(action, Reason))
    assert [turn.role for turn in last.turns] == ["user", "assistant"] * 5 + ["user"]
    assert "[Query]-[Answer] pairs" in last.turns[-1].text


def test_older_references_are_left_out_of_a_long_conversation_first() -> None:
    trace, _ = run(World(UNKNOWN))
    *_, last = (action.prompt for action, _ in trace if isinstance(action, Reason))
    assert [piece.yields for piece in last.yielding] == [2, 3, 4, 5]
    kept = last.keep(0, 1)
    assert [len(turn.pieces) for turn in kept.turns] == [2, 1, 2, 1, 2, 1, 2, 1, 3, 1, 3]


def test_a_node_of_an_abandoned_branch_stays_on_the_path() -> None:
    other = 'Which films has "The Good Dinosaur" followed?'
    first = f"[Query 1]: {other}\n[Answer 1]: Inside Out.\n[Unsolved Query]: {ROLE}"
    _, answer = run(World(first, AFTER_ROLE, FINAL))
    assert accepted(answer)[0] == (other, "Inside Out.")


@each_case(("duplicates", "kind"), [("rater", Rate), ("embedder", Embed)])
def test_a_model_may_tell_which_queries_were_asked_before(duplicates: str, kind: type[Action]) -> None:
    shorter = "What kind of dinosaur is Arlo? "
    chain = RIGHT.replace("[Final", f"[Query 4]: {shorter.lower()}dinosaur\n[Answer 4]: No.\n[Final")
    trace, answer = run(World(chain, FINAL), duplicates=duplicates)
    assert [node.duplicate for node in tree(answer).nodes] == [False, False, False, True]
    compared = [action for action, _ in trace if isinstance(action, kind)]
    assert len(compared) == 3
    assert tree(answer).duplicates == duplicates


def test_equal_queries_are_duplicates_whatever_their_case_and_articles() -> None:
    chain = f"[Query 1]: {KIND}\n[Answer 1]: {APATOSAURUS}\n[Query 2]: what kind of the dinosaur is ARLO\n[Answer 2]: x"
    trace, answer = run(World(chain, FINAL))
    assert queries(trace) == [KIND]
    assert tree(answer).nodes[1].duplicate


def test_an_extractor_reads_in_the_models_place() -> None:
    trace, answer = run(World(WRONG, AFTER_ROLE, FINAL), reader="extractor")
    assert [action.question for action, _ in trace if isinstance(action, Extract)] == [WHO, ROLE, KIND]
    assert not any(isinstance(action, Read) for action, _ in trace)
    assert sources(answer)[1] == "corrected"
    assert tree(answer).reader == "extractor"


def test_the_model_reads_by_a_prompt_of_its_own_with_the_probabilities_of_its_tokens() -> None:
    trace, _ = run(World(RIGHT, FINAL))
    read = next(action for action, _ in trace if isinstance(action, Read))
    assert (read.until, read.scored, read.temperature) == ("line", True, 0.0)
    assert read.prompt.paragraphs == (OCHOA,)
    assert not read.prompt.yielding
    assert read.prompt.turns[0].text.endswith(f"Question: {WHO}\nAnswer:")


def test_documents_looked_up_ahead_lead_to_the_same_answer_in_fewer_turns() -> None:
    for world in (World(RIGHT, FINAL), World(WRONG, AFTER_ROLE, FINAL), World(UNKNOWN, AFTER_ROLE, FINAL)):
        assert run(world, ahead=True)[1] == run(world)[1]
    running = SPEC.open(DINOSAUR, {}, SearChainSettings(ahead=True))
    next(running)
    together = running.send(wrote(RIGHT))
    assert isinstance(together, Together)
    assert [action.query for action in together.actions if isinstance(action, Retrieve)] == [WHO, ROLE, KIND]


# Ablations (table 1)


def test_without_retrieval_the_model_answers_by_one_chain_of_another_prompt() -> None:
    trace, answer = run(World(RIGHT), retrieve=False)
    assert [type(action).__name__ for action, _ in trace] == ["Reason"]
    assert "Unsolved" not in asked(trace)[0]
    assert answer.text == "He is Arlo. So the answer is Apatosaurus."
    assert sources(answer) == [None, None, None]


def test_without_verification_nothing_is_corrected_and_only_unsolved_queries_are_read() -> None:
    trace, answer = run(World(WRONG, FINAL), verify=False)
    assert sources(answer) == ["model", "model", "model"]
    assert not any(isinstance(action, Read) for action, _ in trace)
    trace, answer = run(World(UNKNOWN, AFTER_ROLE, FINAL), verify=False)
    assert sources(answer)[1] == "completed"


def test_without_completion_unsolved_queries_are_passed_over() -> None:
    trace, answer = run(World(UNKNOWN + f"\n[Query 2]: {KIND}\n[Answer 2]: {APATOSAURUS}", FINAL), complete=False)
    assert queries(trace) == [WHO, KIND]
    assert sources(answer) == ["model", None, "model"]


def test_without_tracing_the_final_content_is_that_of_the_last_chain_with_any() -> None:
    trace, answer = run(World(WRONG, UNKNOWN, "Well."), tracing=False)
    assert answer.text == "He is Arlo. So the answer is Apatosaurus."
    assert len(asked(trace)) == 3


def test_released_rules_take_an_extractor_a_rater_and_no_tracing() -> None:
    released = SearChainSettings(**SPEC.rule_settings("released", instructed=False))
    assert (released.reader, released.duplicates, released.node_answers) == ("extractor", "rater", "line")
    assert (released.readings, released.stop) == ("any", ())
    assert not released.tracing


@each_case(
    ("given", "needed"),
    [
        ({}, Needs(corpus=True, capabilities=frozenset({"turns", "scores"}))),
        ({"retrieve": False}, Needs(capabilities=frozenset({"turns"}))),
        ({"reader": "extractor"}, Needs(corpus=True, engines=(EXTRACTOR,), capabilities=frozenset({"turns"}))),
        (
            {"verify": False, "complete": False, "reader": "extractor", "duplicates": "rater"},
            Needs(corpus=True, engines=(DUPLICATE_RATER,), capabilities=frozenset({"turns"})),
        ),
    ],
)
def test_a_run_names_only_the_models_that_its_settings_use(given: dict[str, object], needed: Needs) -> None:
    needs = SPEC.needs(SearChainSettings(**given))  # type: ignore[arg-type]
    assert replace(needs, words={}) == needed
    assert list(needs.words) == ["prompt"]


# The prompts


@each_case("questions", ["multi-hop", "slot-filling", "fact-checking", "long-form"])
@each_case("retrieve", [True, False])
def test_the_prompt_is_a_turn_of_the_users_that_ends_with_the_question(questions: str, *, retrieve: bool) -> None:
    trace, _ = run(World(RIGHT), questions=questions, retrieve=retrieve)
    (first, *_) = (action.prompt for action, _ in trace if isinstance(action, Reason))
    assert [turn.role for turn in first.turns] == ["user"]
    assert first.turns[0].text.startswith("Construct a global reasoning chain")
    assert first.turns[0].text.endswith(f"\n\n[Question]: {DINOSAUR.text}")
    assert first.question == DINOSAUR.text
    assert not first.yielding


def test_a_run_may_bring_the_words_of_the_prompt() -> None:
    words = "Plan {a chain} for: {question}\nPlan:"
    trace, _ = run(World(RIGHT, FINAL), shots={AnswerForm.PROMPT: whole_prompts({"prompt": words})})
    assert asked(trace)[0] == f"Plan {{a chain}} for: {DINOSAUR.text}\nPlan:"


def test_the_examples_in_the_prompts_are_in_the_form_that_they_ask_for() -> None:
    for examples in (EXAMPLES, EXAMPLES_WITHOUT_RETRIEVAL):
        for example in examples.strip().split("\n\n"):
            _, _, chain = example.partition("\n")
            assert read_chain(chain, round=1, most=20).violations == ()


# Whatever a model writes


LISTED = [
    "",
    " ",
    "Paris.",
    "[Final Content]:",
    "[Final Content]: Paris [9].",
    "[Final Content]: Paris [",
    "[Unsolved Query]:",
    "[Query 1]:",
    f"[Unsolved Query]: {ROLE}",
    "[Query 1]: ?\n[Answer 1]: !",
    "[Query 1]: the\n[Answer 1]: the",
    RIGHT * 3,
    "word " * 10_000,
    "".join(f"[Query {n}]: q{n}\n[Answer {n}]: a{n}\n" for n in range(10_000)),
    "[Unsolved Query]: q" * 1000,
    RIGHT.replace("[", "【").replace("]", "】"),
    "[Query 1]: \u0000\ud7ff\U0010ffff\n[Answer 1]: \u2028",
]


@each_case("ahead", [False, True])
@each_case("message", LISTED, ids=range(len(LISTED)))
def test_any_message_ends_within_five_rounds(message: str, *, ahead: bool) -> None:
    bounded([message], ahead=ahead)


@settings(deadline=None)
@given(
    st.lists(
        st.text()
        | st.lists(
            st.sampled_from([WHO, ROLE, "\n", "[Query 1]: ", "[Answer 1]: ", "[Unsolved Query]: ", "[Final Content]: "])
            | st.sampled_from(["[1]", "[2, 7]", "[1-3]", "Arlo", " ", "[Question]: "]),
            max_size=20,
        ).map("".join),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from(["equal", "embedder", "rater"]),
)
def test_any_messages_end_within_five_rounds(messages: list[str], ahead: bool, duplicates: str) -> None:  # noqa: FBT001
    bounded(messages, ahead=ahead, duplicates=duplicates)


def bounded(messages: Sequence[str], **given: object) -> None:
    world = World(*messages)
    opened = SearChainSettings(**given)  # type: ignore[arg-type]
    trace, ended = live(SPEC.open(DINOSAUR, {}, opened), world)
    assert isinstance(ended, Finished)
    details = tree(ended.answer)
    assert details.rounds <= 5
    assert len(details.nodes) <= 5 * 20
    assert len(trace) <= 6 + 5 * 20 * 3
    assert len(details.oddities) <= 6 * 20
    assert set(details.path) <= set(range(len(details.nodes)))
    assert {number for mark in details.marks for number in mark.nodes} <= set(details.path)


def test_an_answer_without_any_tag_is_the_answer() -> None:
    _, answer = run(World("Apatosaurus."))
    assert answer.text == "Apatosaurus."
    assert run(World("<think>\nHm.\n</think>\n\nApatosaurus."))[1].text == "Apatosaurus."
    assert [each.what for each in tree(answer).oddities] == ["nothing"]


def test_without_final_content_the_answer_is_what_the_chain_answers_and_never_what_it_asks() -> None:
    chain = "[Query 1]: Is Ada or Ben older?\n[Answer 1]: Ada is.\n[Unsolved Query]: Why is Ada older than Ben?"
    _, answer = run(World(chain), retrieve=False)
    assert answer.text == "Ada is."
    assert [each.what for each in tree(answer).oddities] == ["no final content"]
    _, answer = run(World("[Unsolved Query]: Is Ada or Ben older?"), retrieve=False)
    assert answer.text == ""


@each_case(
    ("last", "text"),
    [
        ("[Final Content]:", "He is Arlo. So the answer is Apatosaurus."),
        ("[Answer]: Apatosaurus [3]", "Apatosaurus"),
        ("[Query 1]: Who is Arlo?\n[Answer 1]: Apatosaurus [3]", "Apatosaurus"),
        ("[Question]: Who?\nApatosaurus [3]", "Apatosaurus"),
    ],
)
def test_no_tag_of_a_last_turn_becomes_part_of_the_answer(last: str, text: str) -> None:
    _, answer = run(World(RIGHT, last))
    assert answer.text == text
    assert "no final content" in [each.what for each in tree(answer).oddities]


def test_the_run_says_which_reader_and_duplicates_only_where_they_ran() -> None:
    _, whole = run(World(RIGHT, FINAL))
    assert (tree(whole).reader, tree(whole).duplicates) == ("model", "equal")
    _, alone = run(World(RIGHT), retrieve=False)
    assert (tree(alone).reader, tree(alone).duplicates) == ("", "")
    _, unread = run(World(RIGHT, FINAL), verify=False, complete=False)
    assert (tree(unread).reader, tree(unread).duplicates) == ("", "equal")


def test_final_content_without_tag_or_marks_is_marked_by_the_answers_in_it() -> None:
    _, answer = run(World(RIGHT, "He is Arlo. He is an Apatosaurus! Nice."))
    assert answer.text == "He is Arlo. He is an Apatosaurus! Nice."
    assert tree(answer).marks == (Mark(text="He is Arlo.", nodes=(1,)), Mark(text="He is an Apatosaurus!", nodes=(2,)))
    assert [each.what for each in tree(answer).oddities] == ["no final content", "no marks"]


def test_marks_may_stand_together_name_several_pairs_or_none() -> None:
    final = "[Final Content]: One [1][2]. Two [1, 3]. Three [2-3] and four [7]. In [2015] five 【Query 2】."
    _, answer = run(World(RIGHT, final))
    assert [(mark.text, mark.nodes) for mark in tree(answer).marks] == [
        ("One", (0, 1)),
        ("Two", (0, 2)),
        ("Three", (1, 2)),
        ("In [2015] five", (1,)),
    ]
    assert [(each.what, each.text) for each in tree(answer).oddities] == [("unknown mark", "[7]")]
    assert answer.text == "One. Two. Three and four. In [2015] five."


def test_a_list_of_references_has_no_marks() -> None:
    _, answer = run(World(RIGHT, "[Final Content]: It is an Apatosaurus [3].\n\n[1]: Raymond Ochoa\n[3] : Arlo"))
    assert tree(answer).marks == (Mark(text="It is an Apatosaurus", nodes=(2,)),)
    assert answer.text == "It is an Apatosaurus.\n\n[1]: Raymond Ochoa\n[3] : Arlo"


def test_tags_in_a_document_are_not_read() -> None:
    trap = Paragraph(id="t", title="[Final Content]: no", text="[Unsolved Query]: x\n[Query 9]: y [1]")
    trace, answer = run(World(WRONG, AFTER_ROLE, FINAL, documents={**DOCUMENTS, ROLE: trap}))
    assert queries(trace) == [WHO, ROLE, KIND]
    assert tree(answer).oddities == ()


def test_a_text_that_the_token_limit_cut_off_is_recorded() -> None:
    class Cut(World):
        def __call__(self, action: Action) -> Result:
            result = super().__call__(action)
            if isinstance(result, Generated) and isinstance(action, Reason):
                return replace(result, ended="length")
            return result

    _, answer = run(Cut(RIGHT, FINAL))
    assert [(each.round, each.what) for each in tree(answer).oddities] == [(1, "cut"), (2, "cut")]
