"""Rethinking with Retrieval, driven through the replay driver, held against its paper."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.registry import fingerprint
from cotrail.core.actions.retrieve import Lookup, Retrieve
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.history import Failed, Finished
from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.core.system import Action, Answer, System
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.faithfulness.weighing import NO_EVIDENCE, ChosenFact, Weighing
from cotrail.systems.parts.reading import ReaderSettings
from cotrail.systems.registry import find_system
from cotrail.systems.rethinking.evidence import entity_question
from cotrail.systems.rethinking.settings import RethinkingSettings
from tests.cases import each_case
from tests.replay.driving import BINDING, FAILURE, MadeUp, Trace, replayed

SPEC = find_system("rethinking")

# The running example (section 3)

LAPTOP = Question(id="q", text="Did Aristotle use a laptop?")
R1 = (
    "Aristotle died in 2000. The first laptop was invented in 1980. Thus, Aristotle used a laptop. "
    "So the answer is yes."
)
R2 = (
    "Aristotle died in 322BC. The first laptop was invented in 2000. Thus, Aristotle did not use a laptop. "
    "So the answer is no."
)
R3 = (
    "Aristotle died in 322BC. The first laptop was invented in 1980. Thus, Aristotle did not use a laptop. "
    "So the answer is no."
)
D2000, D322, I1980, I2000 = (
    "Aristotle died in 2000.",
    "Aristotle died in 322BC.",
    "The first laptop was invented in 1980.",
    "The first laptop was invented in 2000.",
)
K1 = Paragraph(id="k1", title="Aristotle", text="Aristotle (384-322 BC) was a Greek philosopher and polymath.")
K2 = Paragraph(id="k2", title="Epson HX-20", text="The Epson HX-20, the first laptop computer, was invented in 1980.")

FOUND = dict.fromkeys((D2000, D322, I1980, I2000), (K2, K1))
SIMILAR = {
    **{(K1.text, fact): 0.8 for fact in (D2000, D322)},
    **{(K2.text, fact): 0.1 for fact in (D2000, D322)},
    **{(K1.text, fact): 0.2 for fact in (I1980, I2000)},
    **{(K2.text, fact): 0.7 for fact in (I1980, I2000)},
    **dict.fromkeys([(D2000, D322), (D322, D2000), (I1980, I2000), (I2000, I1980)], 0.9),
    **{pair: 0.3 for one in (D2000, D322) for two in (I1980, I2000) for pair in [(one, two), (two, one)]},
}
ENTAILED = {
    (K1.text, D2000): (0.001, 0.995),
    (K1.text, D322): (0.95, 0.02),
    (K2.text, I1980): (0.97, 0.01),
    (K2.text, I2000): (0.004, 0.992),
    (K1.text, "Aristotle died in 322 BC."): (0.96, 0.01),
}

DEMONSTRATION = Demonstration(
    id="d", paragraphs=(), question="Yes or no: Is it?", answer="It is. So the answer is yes."
)
SHOTS = {
    AnswerForm.COT: Demonstrations(items=(DEMONSTRATION,)),
    AnswerForm.DIRECT: Demonstrations(items=(replace(DEMONSTRATION, answer="yes"),)),
}

Entry = Mapping[str, object]


def world(
    *chains: str,
    answer: str = "no",
    script: Mapping[str, Entry] | None = None,
    failures: Mapping[str, Mapping[str, str]] | None = None,
) -> MadeUp:
    """The running example's."""
    questions = {LAPTOP.text: {"answer": answer, "samples": chains}, **(script or {})}
    model = ScriptedModel({"name": "aristotle", "questions": questions, "failures": failures or {}})
    return MadeUp(model, found=FOUND, similar=SIMILAR, entailed=ENTAILED)


def run(settings: RethinkingSettings, world: MadeUp, question: Question = LAPTOP) -> tuple[Trace, Answer]:
    trace, ended = replayed(opened(settings, question), world)
    assert isinstance(ended, Finished), ended
    return trace, ended.answer


def opened(settings: RethinkingSettings, question: Question = LAPTOP) -> Callable[[], System]:
    shots = {**SHOTS, **SPEC.needs(settings).brought}
    return lambda: SPEC.open(question, shots, settings)


def weighed(answer: Answer) -> Weighing:
    assert isinstance(answer.details, Weighing)
    return answer.details


def asked(trace: Trace, kind: type[Action]) -> list[Action]:
    return [action for action, _ in trace if isinstance(action, kind)]


BY_HAND = {
    1: ([0.495, 0.488, 1.47], [("no", 1.958), ("yes", 0.495)]),
    2: ([0.801 + 1.67, 1.75 + 0.704, 1.75 + 1.67], [("no", 2.454 + 3.42), ("yes", 2.471)]),
    3: ([-0.995 + 0.97, 0.95 - 0.992, 1.92], [("no", 1.878), ("yes", -0.025)]),
}


@each_case("function", [1, 2, 3])
def test_the_running_example_comes_to_no_under_each_function(function: int) -> None:
    settings = RethinkingSettings(chains=3, function=function)  # type: ignore[arg-type]
    _, answer = run(settings, world(R1, R2, R3))
    of_chains, of_predictions = BY_HAND[function]
    weighing = weighed(answer)
    assert weighing.function == function
    assert [chain.faithfulness for chain in weighing.chains] == pytest.approx(of_chains)
    assert [each.prediction for each in weighing.predictions] == [name for name, _ in of_predictions]
    assert [each.weight for each in weighing.predictions] == pytest.approx([weight for _, weight in of_predictions])
    assert (answer.text, weighing.chosen) == ("no", 2)
    assert answer.sentences == (D322, I1980, "Thus, Aristotle did not use a laptop.", "So the answer is no.")
    assert answer.paragraphs == (K1, K2)


def test_every_sentence_stands_there_with_its_evidence_and_scores() -> None:
    _, answer = run(RethinkingSettings(chains=3), world(R1, R2, R3))
    first, second = weighed(answer).chains[1].sentences
    assert (first.text, first.evidence, first.similarity, first.entailment) == (D322, K1.digest, 0.8, 0.95)
    assert (second.text, second.evidence, second.contradiction) == (I2000, K2.digest, 0.992)
    assert second.score == pytest.approx(0.7 - 0.992)


def test_without_voting_the_most_faithful_chain_decides() -> None:
    made = world(R1, R2, R2, R2)
    _, voted = run(RethinkingSettings(chains=4, function=2), made)
    _, unvoted = run(RethinkingSettings(chains=4, function=2, voting=False), made)
    assert (voted.text, weighed(voted).chosen) == ("no", 1)
    assert (unvoted.text, weighed(unvoted).chosen) == ("yes", 0)


def test_the_steps_are_samples_searches_similarities_and_entailments_each_kind_at_once() -> None:
    trace, _ = run(RethinkingSettings(chains=3), world(R1, R2, R3))
    kinds = [type(action).__name__ for action, _ in trace]
    assert kinds == ["Reason"] * 3 + ["Retrieve"] * 4 + ["Embed"] * 4 + ["Entail"] * 4


def test_every_sample_is_drawn_from_one_prompt_with_a_seed_of_its_own() -> None:
    trace, _ = run(RethinkingSettings(), world(R1, R2, R3))
    samples = [action for action, _ in trace if isinstance(action, Reason)]
    assert [action.sample for action in samples] == list(range(9))
    assert {(action.temperature, action.max_tokens, action.until) for action in samples} == {(0.7, 256, "chain")}
    assert {action.prompt.render() for action in samples} == {
        "Q: Yes or no: Is it?\nA: It is. So the answer is yes.\n\nQ: Yes or no: Did Aristotle use a laptop?\nA:"
    }
    assert len({fingerprint(action, BINDING) for action in samples}) == 9


def test_a_fact_of_several_chains_is_looked_up_once_and_counts_for_each() -> None:
    trace, answer = run(RethinkingSettings(chains=4), world(R3, R3, D322 + " " + R3, R1))
    assert [action.query for action in asked(trace, Retrieve) if isinstance(action, Retrieve)] == [D322, I1980, D2000]
    assert [len(chain.sentences) for chain in weighed(answer).chains] == [2, 2, 3, 2]


def test_of_equally_similar_paragraphs_the_earlier_is_the_evidence() -> None:
    made = world(R1)
    made.similar = {(text, fact): 0.5 for text in (K1.text, K2.text) for fact in FOUND}
    _, answer = run(RethinkingSettings(chains=1), made)
    assert {each.evidence for each in weighed(answer).chains[0].sentences} == {K2.digest}


def test_by_the_released_code_an_answer_below_nothing_loses_to_one_that_no_chain_states() -> None:
    settings = RethinkingSettings(chains=1, function=3, chain_rules="released")
    _, answer = run(settings, world(f"{D2000} So the answer is yes."))
    assert (answer.text, weighed(answer).chosen) == ("no", None)
    assert [(each.prediction, each.chains) for each in weighed(answer).predictions] == [("no", ()), ("yes", (0,))]
    _, answer = run(replace(settings, chain_rules="paper"), world(f"{D2000} So the answer is yes."))
    assert (answer.text, weighed(answer).chosen) == ("yes", 0)


# Chains as models write them


@each_case(
    ("chains", "text", "chosen"),
    [
        (["So the answer is yes."], "yes", 0),
        (["yes"], "yes", 0),
        ([f"{D322} {I1980}"], "", None),
        (["It may be.", "Perhaps."], "", None),
        ([" ".join(["So the answer is yes. So the answer is no."] * 5)], "no", 0),
        (["So the answer is yes.", "So the answer is no.", "So the answer is no."], "no", 1),
        (["So the answer is no one knows."], "", None),
        ([f"1. {D322}\n2. {I1980}\n\nSo the answer is no."], "no", 0),
    ],
)
def test_chains_without_facts_without_answers_and_with_ten(chains: list[str], text: str, chosen: int | None) -> None:
    _, answer = run(RethinkingSettings(chains=len(chains)), world(*chains))
    assert (answer.text, weighed(answer).chosen) == (text, chosen)
    assert [chain.text for chain in weighed(answer).chains] == chains


def test_without_any_fact_nothing_is_looked_up() -> None:
    trace, answer = run(RethinkingSettings(chains=2), world("So the answer is yes."))
    assert [type(action) for action, _ in trace] == [Reason, Reason]
    assert answer == Answer(text="yes", sentences=("So the answer is yes.",), details=answer.details)


def test_a_fact_without_evidence_has_the_scores_of_nothing_found() -> None:
    made = world(R1, R3)
    made.found = {**FOUND, D2000: (), I1980: ()}
    trace, answer = run(RethinkingSettings(chains=2), made)
    first, second = weighed(answer).chains[0].sentences
    assert first.evidence is None
    assert (first.similarity, first.entailment, first.contradiction) == (
        NO_EVIDENCE.similarity, NO_EVIDENCE.entailment, NO_EVIDENCE.contradiction,
    )  # fmt: skip
    assert second.evidence is None
    assert len(asked(trace, Embed)) == len(asked(trace, Entail)) == 1
    assert answer.paragraphs == (K1,)


def test_an_empty_sample_costs_no_other_chain() -> None:
    made = world(R1, R2, R3, failures={LAPTOP.text: {"sample 0": "empty"}})
    _, answer = run(RethinkingSettings(chains=3), made)
    assert [chain.text for chain in weighed(answer).chains] == ["", R2, R3]
    assert [chain.number for chain in weighed(answer).chains] == [0, 1, 2]
    assert (answer.text, weighed(answer).chosen) == ("no", 2)


def test_where_every_sample_is_empty_there_is_no_answer() -> None:
    made = world(R1, failures={LAPTOP.text: {"sample 0": "empty", "sample 1": "empty"}})
    trace, answer = run(RethinkingSettings(chains=2), made)
    assert (answer.text, answer.sentences, len(trace)) == ("", (), 2)


def test_any_other_failure_of_a_sample_fails_the_question() -> None:
    made = world(R1, failures={LAPTOP.text: {"sample 0": "empty", "sample 1": "permanent"}})
    _, ended = replayed(opened(RethinkingSettings(chains=2)), made)
    assert isinstance(ended, Failed)
    assert ended.failure.type == "StepError"


@each_case("kind", [Retrieve, Embed, Entail])
def test_evidence_that_can_t_be_had_fails_the_question(kind: type[Action]) -> None:
    made = world(R1)
    _, ended = replayed(
        opened(RethinkingSettings(chains=1)), lambda action: FAILURE if isinstance(action, kind) else made(action)
    )
    assert ended == Failed(FAILURE)


# Knowledge sources (sections 4.2 to 4.4, table 3 and section 5.3)

TABLE = GoldParagraph(
    title="Curitiba", text="The Region of Curitiba are South. The Elevation of Curitiba are 934.6 metres."
)
HYPOTHESIS = Question(id="t", text="Curitiba is above sea level. True or False?", pinned=TABLE)
IN_TABLE = "The elevation of Curitiba are 934.6 metres. Thus, Curitiba is above sea level. So the answer is true."
FACT = "The elevation of Curitiba are 934.6 metres."


def searched(settings: RethinkingSettings, question: Question, *chains: str) -> list[Action]:
    model = ScriptedModel({"name": "s", "questions": {question.text: {"answer": "", "samples": chains}}})
    trace, _ = run(replace(settings, chains=len(chains)), MadeUp(model), question)
    return [action for action, _ in trace if isinstance(action, Retrieve | Lookup)]


def test_a_sentence_is_searched_as_it_stands_for_ten_paragraphs() -> None:
    chain = "What is it? Who does this?"
    assert searched(RethinkingSettings(), LAPTOP, chain) == [
        Retrieve(query="What is it?", count=10), Retrieve(query="Who does this?", count=10),
    ]  # fmt: skip


def test_with_the_question_as_the_query_it_is_searched_once() -> None:
    settings = RethinkingSettings(query="question", retrieval_count=3)
    assert searched(settings, LAPTOP, R1, R2) == [Retrieve(query=LAPTOP.text, count=3)]
    settings = RethinkingSettings(query="question", task="temporal")
    assert searched(settings, LAPTOP, R1, R2) == [Lookup(source="wikidata", text=LAPTOP.text)]


NAMED = (GoldParagraph(title=K1.title, text=K1.text), "Laptop", GoldParagraph(title=K2.title, text=K2.text))


def test_the_dataset_s_evidence_is_its_paragraphs_which_nobody_searches_for() -> None:
    settings = RethinkingSettings(knowledge=("evidence",), chains=1)
    trace, answer = run(settings, world(R3), replace(LAPTOP, evidence=NAMED))
    assert asked(trace, Retrieve) == []
    compared = [action.paragraphs for action in asked(trace, Embed) if isinstance(action, Embed)]
    assert [[(each.title, each.text) for each in paragraphs] for paragraphs in compared] == [
        [(K1.title, K1.text), (K2.title, K2.text)]
    ] * 2
    assert [each.evidence for each in weighed(answer).chains[0].sentences] == [K1.digest, K2.digest]
    assert [each.digest for each in answer.paragraphs] == [K1.digest, K2.digest]


def test_pages_that_the_dataset_names_are_searched_where_that_is_asked_for() -> None:
    settings = RethinkingSettings(knowledge=("evidence",), evidence="pages")
    found = searched(settings, replace(LAPTOP, evidence=NAMED), "Aristotle died.")
    pages = ("Aristotle", "Laptop", "Epson HX-20")
    assert found == [Retrieve(query="Aristotle died.", count=10, titles=pages, scope="only")]
    assert searched(settings, LAPTOP, "Aristotle died.") == []


def test_temporal_sentences_are_looked_up_in_wikidata() -> None:
    chain = "Harry died. John lived. So the answer is John."
    found = searched(RethinkingSettings(task="temporal"), Question(id="q", text="who was it?"), chain)
    assert found == [Lookup(source="wikidata", text=text) for text in ("Harry died.", "John lived.")]


def test_the_table_and_the_words_between_it_and_the_hypothesis_are_looked_up_once_for_all_sentences() -> None:
    found = searched(RethinkingSettings(task="tabular"), HYPOTHESIS, IN_TABLE, "Elevation is level. " + IN_TABLE)
    hypothesis = "Curitiba is above sea level."
    assert found == [
        Lookup(source="table", text=TABLE.text),
        Lookup(source="wordnet", text=TABLE.text, other=hypothesis),
        Lookup(source="conceptnet", text=TABLE.text, other=hypothesis),
    ]


def test_a_question_that_pins_nothing_has_no_table_to_look_up() -> None:
    assert searched(RethinkingSettings(task="tabular"), replace(HYPOTHESIS, pinned=None), IN_TABLE) == []


def test_what_all_sources_found_is_compared_in_their_order() -> None:
    settings = RethinkingSettings(task="tabular", knowledge=("conceptnet", "corpus"), chains=1)
    made = MadeUp(
        ScriptedModel({"name": "s", "questions": {HYPOTHESIS.text: {"answer": "", "samples": [IN_TABLE]}}}),
        found={TABLE.text: (K1,), FACT: (K2, K1)},
    )
    trace, _ = run(settings, made, HYPOTHESIS)
    (embed,) = asked(trace, Embed)
    assert embed == Embed(sentences=(FACT,), paragraphs=(K1, K2, K1))


def test_a_hypothesis_is_asked_under_its_table_without_a_prefix() -> None:
    made = MadeUp(ScriptedModel({"name": "s", "questions": {HYPOTHESIS.text: {"answer": "", "samples": ["."]}}}))
    trace, _ = run(RethinkingSettings(task="tabular"), made, HYPOTHESIS)
    assert len(trace) == 10
    (action, _) = trace[0]
    assert isinstance(action, Reason)
    assert action.prompt.render().endswith(
        f"yes.\n\n{TABLE.text}\nQuestion: Curitiba is above sea level. True or False?\nAnswer:"
    )


# Variant I, fact selection (section 5.3)


def test_fact_selection_takes_the_first_sentence_of_r2_and_the_second_of_r1() -> None:
    settings = RethinkingSettings(chains=2, variant="selection")
    trace, answer = run(settings, world(R1, R2))
    assert weighed(answer).function == 3
    assert weighed(answer).chosen == 0
    assert weighed(answer).facts == (
        ChosenFact(
            text=D322, replaces=D2000, origin="selected", evidence=K1.digest, entailment=0.95, contradiction=0.02
        ),
        ChosenFact(text=I1980, replaces=I1980, origin="kept", evidence=K2.digest, entailment=0.97, contradiction=0.01),
    )
    assert (answer.text, answer.sentences, answer.paragraphs) == ("no", (D322, I1980), (K1, K2))
    assert trace[-2][0] == Embed(sentences=(D2000, I1980, D322, I2000))
    reader = trace[-1][0]
    assert isinstance(reader, Read)
    assert reader.prompt.render() == (
        f"Q: Yes or no: Is it?\nA: yes\n\n{D322} {I1980}\n\nQ: Yes or no: Did Aristotle use a laptop?\nA:"
    )


@each_case(
    ("inference", "prompt"),
    [
        ("zero-shot", f"{D322} {I1980}\n\nQ: Yes or no: Did Aristotle use a laptop?\nA: So the answer is"),
        ("unifiedqa", f"did aristotle use a laptop? \\n {D322.lower()} {I1980.lower()}"),
    ],
)
def test_facts_are_inferred_from_without_demonstrations(inference: str, prompt: str) -> None:
    settings = RethinkingSettings(chains=2, variant="selection", inference=inference)  # type: ignore[arg-type]
    trace, answer = run(settings, world(R1, R2, answer="no."))
    reader = trace[-1][0]
    assert isinstance(reader, Read)
    assert reader.prompt.render() == prompt
    assert answer.text == "no"


@each_case("inference", ["reader", "zero-shot", "unifiedqa"])
def test_a_second_model_infers_the_answer_where_the_run_names_one(inference: Any) -> None:
    settings = RethinkingSettings(chains=2, variant="selection", inference=inference, inferring_model="inferrer")
    trace, answer = run(settings, world(R1, R2, answer="no."))
    assert [each.model for each, _ in trace if isinstance(each, Reason)] == ["model", "model"]
    assert [each.model for each, _ in trace if isinstance(each, Read)] == ["inferrer"]
    assert answer.text == "no"


def test_the_cot_reader_goes_on_from_the_supporting_facts() -> None:
    settings = RethinkingSettings(chains=2, variant="selection", reading=ReaderSettings(reader="cot"))
    trace, answer = run(settings, world(R1, R2, answer="Thus, he did not. So the answer is no."))
    assert answer.text == "no"
    reader = trace[-1][0]
    assert isinstance(reader, Read)
    assert reader.prompt.render().endswith(f"Q: Yes or no: Did Aristotle use a laptop?\nA: {D322} {I1980}")


def test_without_a_reader_the_answer_stays_that_of_the_best_chain() -> None:
    settings = RethinkingSettings(chains=2, variant="selection", reading=ReaderSettings(reader="none"))
    trace, answer = run(settings, world(R1, R2))
    assert (answer.text, answer.sentences) == ("yes", (D322, I1980))
    assert asked(trace, Read) == []


def test_of_equally_faithful_facts_of_a_topic_a_chain_keeps_its_own() -> None:
    made = world(R1, R2)
    made.entailed = dict.fromkeys(ENTAILED, (0.1, 0.1))
    _, answer = run(RethinkingSettings(chains=2, variant="selection"), made)
    assert [fact.origin for fact in weighed(answer).facts] == ["kept", "kept"]


def test_facts_that_are_not_similar_enough_are_of_different_topics() -> None:
    settings = RethinkingSettings(chains=2, variant="selection", topic_similarity=0.95)
    _, answer = run(settings, world(R1, R2))
    assert [fact.text for fact in weighed(answer).facts] == [D2000, I1980]


def test_two_facts_that_one_replaces_are_told_once() -> None:
    settings = RethinkingSettings(chains=2, variant="selection", topic_similarity=-1)
    _, answer = run(settings, world(R1, R2))
    assert [(fact.replaces, fact.text) for fact in weighed(answer).facts] == [(D2000, I1980), (I1980, I1980)]
    assert answer.sentences == (I1980,)


@each_case("variant", ["selection", "generation"])
def test_a_variant_needs_no_facts(variant: str) -> None:
    settings = RethinkingSettings(chains=1, variant=variant)  # type: ignore[arg-type]
    trace, answer = run(settings, world("So the answer is yes."))
    assert [type(action) for action, _ in trace] == [Reason, Read]
    assert (answer.text, answer.sentences) == ("no", ())


@each_case("variant", ["selection", "generation"])
def test_a_variant_of_chains_that_state_no_answer_has_none(variant: str) -> None:
    settings = RethinkingSettings(chains=1, variant=variant)  # type: ignore[arg-type]
    trace, answer = run(settings, world(f"{D322} {I1980}"))
    assert (answer.text, weighed(answer).facts, asked(trace, Read)) == ("", (), [])
    assert answer.paragraphs == (K1, K2)


# Variant II, fact generation

GENERATED = "Aristotle died in 322 BC."
WHO, WHEN = "Who died in 2000?", "When did Aristotle die?"
ASKING: Mapping[str, Entry] = {
    entity_question(D2000, "Aristotle"): {"answer": WHO},
    entity_question(D2000, "2000"): {"answer": WHEN},
    WHO: {"answer": "unknown", "answers": {D2000: "Aristotle"}},
    WHEN: {"answer": "unknown", "answers": {D2000: "2000", K1.text: "322 BC."}},
}
GENERATION = RethinkingSettings(chains=1, variant="generation")


def test_fact_generation_makes_a_fact_of_the_evidence_for_r1_alone() -> None:
    trace, answer = run(GENERATION, world(R1, script=ASKING))
    assert weighed(answer).facts == (
        ChosenFact(
            text=GENERATED, replaces=D2000, origin="generated", evidence=K1.digest, entailment=0.96, contradiction=0.01
        ),
        ChosenFact(text=I1980, replaces=I1980, origin="kept", evidence=K2.digest, entailment=0.97, contradiction=0.01),
    )
    assert (answer.text, answer.sentences) == ("no", (GENERATED, I1980))
    kinds = [type(action).__name__ for action, _ in trace[8:]]
    # Of the evidence only what the fact answers is asked: both entities; and one of the answers is a new one.
    assert kinds == ["Reason", "Reason", "Read", "Read", "Read", "Read", "Entail", "Read"]
    assert trace[-2][0] == Entail(premise=K1, hypothesis=GENERATED)


def test_questions_and_answers_are_asked_with_the_system_s_own_demonstrations() -> None:
    trace, _ = run(GENERATION, world(R1, script=ASKING))
    question, reading = trace[9][0], trace[13][0]
    own = SPEC.needs(GENERATION).brought
    assert isinstance(question, Reason)
    assert question.prompt.demonstrations == own[AnswerForm.QUESTION]
    assert question.prompt.render().endswith(f"Q: {entity_question(D2000, '2000')}\nA:")
    assert isinstance(reading, Read)
    assert reading.prompt.demonstrations == own[AnswerForm.SPAN]
    assert reading.prompt.render().endswith(f"\n\n\nWikipedia Title: Aristotle\n{K1.text}\n\nQ: {WHEN}\nA:")


@each_case(
    ("question", "entry"),
    [
        (WHEN, {"answer": "unknown", "answers": {D2000: "in Chalcis", K1.text: "322 BC"}}),
        (WHEN, {"answer": "unknown", "answers": {D2000: "2000"}}),
        (WHEN, {"answer": "2000."}),
        (WHEN, {"answer": "unknown", "answers": {D2000: "2000", K1.text: "384 BC"}}),
    ],
    ids=["the fact doesn't answer it", "the evidence doesn't", "the evidence agrees", "the statement isn't entailed"],
)
def test_a_fact_stays_where_nothing_better_comes_of_the_evidence(question: str, entry: Entry) -> None:
    made = world(R1, script={**ASKING, question: entry})
    made.entailed = {**ENTAILED, (K1.text, "Aristotle died in 384 BC."): (0.59, 0.1)}
    _, answer = run(GENERATION, made)
    assert [fact.origin for fact in weighed(answer).facts] == ["kept", "kept"]
    assert weighed(answer).facts[0].text == D2000


def test_a_model_that_writes_no_question_leaves_the_facts() -> None:
    asking = {question: entry for question, entry in ASKING.items() if question not in (WHO, WHEN)}
    made = world(R1, script=asking, answer="no", failures={question: {"answer": "empty"} for question in asking})
    trace, answer = run(GENERATION, made)
    assert len(asked(trace, Read)) == 1
    assert answer.sentences == (D2000, I1980)


def test_of_several_statements_the_most_entailed_is_taken() -> None:
    who = {"answer": "unknown", "answers": {D2000: "Aristotle", K1.text: "a philosopher"}}
    made = world(R1, script={**ASKING, WHO: who})
    made.entailed = {**ENTAILED, (K1.text, "A philosopher died in 2000."): (0.97, 0.01)}
    _, answer = run(GENERATION, made)
    assert weighed(answer).facts[0].text == "A philosopher died in 2000."
    made.entailed = {**ENTAILED, (K1.text, "A philosopher died in 2000."): (0.96, 0.01)}
    _, answer = run(GENERATION, made)
    assert weighed(answer).facts[0].text == "A philosopher died in 2000.", "of equals the earliest"
    made.entailed = {**ENTAILED, (K1.text, "A philosopher died in 2000."): (0.95, 0.01)}
    _, answer = run(GENERATION, made)
    assert weighed(answer).facts[0].text == GENERATED


def test_facts_that_their_evidence_supports_are_asked_nothing() -> None:
    trace, answer = run(GENERATION, world(R3))
    assert len(asked(trace, Read)) == 1
    assert answer.sentences == (D322, I1980)


def test_facts_without_evidence_are_asked_nothing() -> None:
    made = world(R1)
    made.found = dict.fromkeys(FOUND, ())
    trace, answer = run(GENERATION, made)
    assert [type(action).__name__ for action, _ in trace] == ["Reason", "Retrieve", "Retrieve", "Embed", "Read"]
    assert answer.sentences == (D2000, I1980)
