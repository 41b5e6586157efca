"""The baselines of Rethinking with Retrieval, driven through the replay driver."""

from typing import Any

import msgspec
from msgspec.structs import replace

from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Demonstration, Demonstrations
from cotrail.core.history import Failed, Finished
from cotrail.core.questions import GoldParagraph, Question
from cotrail.core.system import Answer
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.faithfulness.weighing import Weighing
from cotrail.systems.baselines import ZeroShotSettings
from cotrail.systems.parts.majority import BaselineSettings, SampledSettings, TaskSettings
from cotrail.systems.registry import find_system
from tests.cases import each_case
from tests.replay.driving import MadeUp, Trace, replayed

LAPTOP = Question(id="q", text="Did Aristotle use a laptop?")
GOVERNOR = Question(id="g", text="who was governor of oregon when shanghai noon was released?")
TABLE = GoldParagraph(title="Curitiba", text="The Region of Curitiba are South.")
FACTS = GoldParagraph(title="", text="Aristotle died in 322 BC.")
KNOWN = replace(LAPTOP, pinned=FACTS)
HYPOTHESIS = Question(id="h", text="Curitiba is in the south. True or False?", pinned=TABLE)
CHAIN = "Aristotle died in 322 BC. Thus, he did not. So the answer is no."

DEMONSTRATION = Demonstration(id="d", paragraphs=(), question="Is it?", answer="It is. So the answer is yes.")
SHOTS = {
    AnswerForm.COT: Demonstrations(items=(DEMONSTRATION,)),
    AnswerForm.DIRECT: Demonstrations(items=(replace(DEMONSTRATION, answer="yes"),)),
}


def run(
    system: str, written: str | list[str], settings: TaskSettings, question: Question = LAPTOP, empty: str = ""
) -> tuple[Trace, Finished | Failed]:
    """What comes of a question that this is written for, as an answer or in samples; nothing at the step `empty`."""
    samples = [written] if isinstance(written, str) else written
    script = {
        "name": "s",
        "questions": {question.text: {"answer": samples[0], "samples": samples}},
        "failures": {question.text: {empty: "empty"}},
    }
    return replayed(lambda: find_system(system).open(question, SHOTS, settings), MadeUp(ScriptedModel(script)))


def baseline(system: str, task: str = "commonsense", **settings: Any) -> BaselineSettings:
    kind = ZeroShotSettings if system == "zero-shot" else BaselineSettings
    return msgspec.convert({"task": task, **settings}, kind)


def answered(system: str, written: str, task: str, question: Question = LAPTOP, **settings: Any) -> Answer:
    _, ended = run(system, written, baseline(system, task, **settings), question)
    assert isinstance(ended, Finished)
    return ended.answer


@each_case("system", ["zero-shot", "few-shot"])
@each_case(
    ("written", "task", "answer"),
    [
        ("no", "commonsense", "no"),
        ("No.", "commonsense", "no"),
        ("yes, he did.", "commonsense", "yes"),
        ("The answer is yes.", "commonsense", "yes"),
        ("unclear.", "commonsense", ""),
        ("John Kitzhaber", "temporal", "John Kitzhaber"),
        ("John Kitzhaber.", "temporal", "John Kitzhaber"),
        ("True", "tabular", "true"),
        ("It depends.", "tabular", ""),
    ],
)
def test_what_is_written_is_read_by_the_task_s_rules(system: str, written: str, task: str, answer: str) -> None:
    assert answered(system, written, task) == Answer(text=answer)


def test_zero_shot_has_the_stating_sentence_ended_without_demonstrations() -> None:
    ((action, _),), _ = run("zero-shot", "no", ZeroShotSettings())
    assert isinstance(action, Read)
    assert action.prompt.render() == "Q: Yes or no: Did Aristotle use a laptop?\nA: So the answer is"
    assert (action.max_tokens, action.until, action.temperature) == (256, "chain", 0.0)


@each_case(
    ("settings", "question", "prompt"),
    [
        ({"task": "temporal"}, GOVERNOR, f"Q: {GOVERNOR.text}\nA: The answer is"),
        ({"task": "tabular"}, HYPOTHESIS, f"{TABLE.text}\nQuestion: {HYPOTHESIS.text}\nAnswer:"),
        ({"opening": "Well,"}, LAPTOP, f"Q: Yes or no: {LAPTOP.text}\nA: Well,"),
        ({}, KNOWN, f"{FACTS.text}\n\nQ: Yes or no: {LAPTOP.text}\nA: So the answer is"),
        ({"layout": "unifiedqa"}, LAPTOP, "did aristotle use a laptop? \\n"),
        ({"layout": "unifiedqa"}, KNOWN, "did aristotle use a laptop? \\n aristotle died in 322 bc."),
    ],
)
def test_each_task_s_zero_shot_prompt_opens_its_answer_in_its_own_way(
    settings: dict[str, Any], question: Question, prompt: str
) -> None:
    ((action, _),), _ = run("zero-shot", "no", baseline("zero-shot", **settings), question)
    assert isinstance(action, Read)
    assert action.prompt.render() == prompt


def test_few_shot_shows_the_demonstrations_answers() -> None:
    ((action, _),), _ = run("few-shot", "no", BaselineSettings())
    assert isinstance(action, Read)
    assert action.prompt.render() == "Q: Is it?\nA: yes\n\nQ: Yes or no: Did Aristotle use a laptop?\nA:"


def test_only_yes_or_no_questions_have_the_prefix_and_a_table_is_shown() -> None:
    ((action, _),), _ = run("few-shot", "true", BaselineSettings(task="tabular"), HYPOTHESIS)
    assert isinstance(action, Read)
    assert action.prompt.render().endswith(f"\n\n{TABLE.text}\nQuestion: {HYPOTHESIS.text}\nAnswer:")


def test_chain_of_thought_takes_what_the_likeliest_chain_states() -> None:
    trace, ended = run("chain-of-thought", CHAIN, BaselineSettings(max_tokens=99))
    ((action, _),) = trace
    assert isinstance(action, Reason)
    assert action.prompt.demonstrations == SHOTS[AnswerForm.COT]
    assert (action.max_tokens, action.until, action.sample, action.temperature) == (99, "chain", None, 0.0)
    sentences = ("Aristotle died in 322 BC.", "Thus, he did not.", "So the answer is no.")
    assert ended == Finished(Answer(text="no", sentences=sentences))


def test_a_chain_of_several_lines_states_its_answer() -> None:
    chain = "1. Aristotle died\nin 322 BC.\n2. Thus, he did not.\n\nSo the answer is\nno."
    answer = answered("chain-of-thought", chain, "commonsense")
    sentences = ("Aristotle died in 322 BC.", "Thus, he did not.", "So the answer is no.")
    assert answer == Answer(text="no", sentences=sentences)


@each_case(
    ("system", "written", "task", "answer"),
    [
        ("zero-shot", "no one knows", "commonsense", "unclear"),
        ("zero-shot", "\nNo.", "commonsense", "no"),
        ("few-shot", "Probably true", "tabular", "unclear"),
        ("few-shot", "the\n 39th. He", "temporal", "the\n 39th. He"),
        ("chain-of-thought", "So the answer is nothing.", "commonsense", "no"),
        ("chain-of-thought", "The answer is A. The answer is B.", "temporal", "A. The answer is B."),
    ],
)
def test_the_released_code_takes_what_is_written_as_it_is(system: str, written: str, task: str, answer: str) -> None:
    assert answered(system, written, task, chain_rules="released", until="end").text == answer


def test_a_chain_that_states_nothing_has_no_answer() -> None:
    assert answered("chain-of-thought", "It may be.", "commonsense").text == ""


@each_case("system", ["zero-shot", "few-shot", "chain-of-thought"])
def test_a_model_that_writes_nothing_has_answered_with_the_empty_text(system: str) -> None:
    _, ended = run(system, "no", baseline(system), empty="answer")
    assert ended == Finished(Answer(text=""))


# Self-consistency


def consistent(*chains: str, settings: SampledSettings | None = None, empty: str = "") -> Answer:
    settings = settings or SampledSettings(chains=len(chains))
    _, ended = run("self-consistency", list(chains), settings, empty=empty)
    assert isinstance(ended, Finished)
    return ended.answer


def test_self_consistency_takes_the_answer_of_most_chains() -> None:
    answer = consistent("So the answer is yes.", CHAIN, "It may be.", "So the answer is no.", "So the answer is no.")
    assert (answer.text, answer.sentences[0]) == ("no", "Aristotle died in 322 BC.")
    assert isinstance(answer.details, Weighing)
    assert answer.details.function == 0
    assert [chain.prediction for chain in answer.details.chains] == ["yes", "no", "", "no", "no"]
    assert [(each.prediction, each.weight, each.chains) for each in answer.details.predictions] == [
        ("no", 3.0, (1, 3, 4)), ("yes", 1.0, (0,)),
    ]  # fmt: skip
    assert answer.details.chosen == 1


def test_of_equally_frequent_answers_the_earlier_one_wins() -> None:
    assert consistent("So the answer is yes.", "So the answer is no.").text == "yes"


def test_chains_of_several_lines_vote_as_those_of_one_do() -> None:
    answer = consistent(
        "So the answer is yes.", "He died.\n\nSo the answer is no.", "1. He died\n2. So the answer is no."
    )
    assert answer.text == "no"


def test_by_the_released_code_yes_and_no_tie_and_true_and_false_do_not() -> None:
    def told(task: str, *chains: str) -> str:
        given = {"task": task, "chains": len(chains), "chain_rules": "released"}
        return consistent(*chains, settings=msgspec.convert(given, SampledSettings)).text

    assert told("commonsense", "So the answer is yes.", "So the answer is no.", "Perhaps.") == "unclear"
    assert told("tabular", "So the answer is true.", "So the answer is false.") == "true"
    assert told("tabular", "Perhaps.", "It may be.", "So the answer is false.") == "unclear"
    assert told("temporal", "So the answer is A.", "So the answer is B.", "So the answer is A") == "A."


def test_temporal_answers_that_differ_in_their_spelling_alone_count_as_one() -> None:
    settings = SampledSettings(task="temporal", chains=3)
    chains = ("So the answer is Roberts.", "So the answer is John Kitzhaber.", "So the answer is the john kitzhaber.")
    assert consistent(*chains, settings=settings).text == "John Kitzhaber"


def test_empty_samples_cost_no_other_chain() -> None:
    answer = consistent(CHAIN, "So the answer is yes.", empty="sample 0")
    assert answer.text == "yes"
    assert isinstance(answer.details, Weighing)
    assert [chain.text for chain in answer.details.chains] == ["", "So the answer is yes."]


def test_where_every_sample_is_empty_there_is_no_answer() -> None:
    answer = consistent(CHAIN, empty="sample 0")
    assert (answer.text, answer.sentences) == ("", ())


@each_case(("task", "count"), [("commonsense", 9), ("temporal", 10), ("tabular", 10)])
def test_ten_chains_are_sampled_and_nine_for_yes_or_no(task: str, count: int) -> None:
    settings = SampledSettings(task=task)  # type: ignore[arg-type]
    trace, _ = run("self-consistency", CHAIN, settings, GOVERNOR)
    assert [action.sample for action, _ in trace if isinstance(action, Reason)] == list(range(count))
