import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Asked, Prompt, Shown, Written, assistant, plain, system, user
from cotrail.core.questions import Paragraph, parse_titles, title_question
from cotrail.core.results import Generated
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import InputError, StepError, TransientStepError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.cases import each_case

DIGEST = "171f9b6e28cd1671dd86e1082d8bdcc3297729677560cf54471b6034e7be88a9"
SCRIPT = {
    "name": "chain",
    "questions": {"Who?": {"sentences": ["One came.", "Two went."], "answer": "Three"}},
    "default": {"answer": "nobody"},
}


def write(model: LanguageModel, question: str, sentences: int = 0, until: Until = "sentence") -> Generated:
    prompt = few_shot_prompt(
        demonstrations=Demonstrations(),
        paragraphs=(Paragraph(id="p", title="T", text="some text"),),
        question=question,
        sentences=("It was.",) * sentences,
    )
    return model.generate(GenerationRequest(prompt, until, 10))


def test_sentences_come_in_the_script_s_order_and_then_the_answer() -> None:
    model = ScriptedModel(SCRIPT)
    texts = [write(model, "Who?", n).text for n in range(4)]
    assert texts == ["One came.", "Two went.", "So the answer is: Three.", "So the answer is: Three."]
    assert write(model, "Who?", 2, "line").text == "Three"


def test_an_instruction_before_the_question_does_not_hide_it() -> None:
    assert write(ScriptedModel(SCRIPT), "Think first.\nWho?").text == "One came."


def test_an_unknown_question_gets_the_default_or_fails() -> None:
    assert write(ScriptedModel(SCRIPT), "What?", until="line").text == "nobody"
    with pytest.raises(StepError, match=r"no question 'What\?'"):
        write(ScriptedModel({**SCRIPT, "default": None}), "What?")


def test_words_are_counted_as_tokens_and_the_context_is_kept() -> None:
    result = write(ScriptedModel(SCRIPT), "Who?")
    assert (result.prompt_tokens, result.generated_tokens, result.paragraphs) == (8, 2, 1)
    small = write(ScriptedModel({**SCRIPT, "context": 14}), "Who?")
    assert (small.prompt_tokens, small.paragraphs) == (3, 0)


def test_a_question_of_several_lines_is_found_whole_or_behind_its_instruction() -> None:
    model = ScriptedModel({"name": "lines", "questions": {"Who?\nWhen?\n": {"answer": "then"}}})
    assert write(model, "Who?\nWhen?\n", until="line").text == "then"
    assert write(model, "Think first.\nWho?\nWhen?\n", until="line").text == "then"


@each_case("question", ["Who?", "Who said 'Go'. Generate titles of 2?", "'", "Who 'is' \"it\"'?\nAnd?", ""])
@each_case("instruction", ["", "Think first.\n", "It's one of two:\n"])
@each_case("count", [1, 3, 12])
def test_titles_are_written_for_the_question_between_the_quotation_marks(
    question: str, instruction: str, count: int
) -> None:
    titles = ['Ink, "blue"', "Aschenbrödel"]
    model = ScriptedModel({"name": "titles", "questions": {question: {"answer": "ink", "titles": titles}}})
    written = write(model, instruction + title_question(question, count), until="line").text
    assert list(parse_titles(written)) == titles
    assert "Aschenbrödel" in written


def test_a_script_without_titles_names_no_page() -> None:
    model = ScriptedModel(SCRIPT)
    assert write(model, title_question("Who?", 3), until="line").text == "[]"
    assert write(model, title_question("What?", 3), until="line").text == "[]"
    with pytest.raises(StepError, match=r"no question 'What\?'"):
        write(ScriptedModel({**SCRIPT, "default": None}), title_question("What?", 3), until="line")


def test_titles_fail_apart_from_the_answer() -> None:
    model = ScriptedModel({**SCRIPT, "failures": {"Who?": {"titles": "permanent"}}})
    with pytest.raises(StepError, match="step titles"):
        write(model, title_question("Who?", 3), until="line")
    assert write(model, "Who?", until="line").text == "Three"


def test_titles_are_part_of_the_identity_once_a_script_has_them() -> None:
    entries: list[dict[str, object]] = [
        {"answer": "I"},
        {"answer": "I", "titles": []},
        {"answer": "I", "titles": ["Ink"]},
    ]
    without, empty, named = (ScriptedModel({"name": "x", "questions": {"Who?": entry}}).identity for entry in entries)
    assert len({without, empty, named}) == 3
    assert without == f"x@{DIGEST}"


@each_case(("kind", "error"), [("transient", TransientStepError), ("permanent", StepError)])
def test_a_scripted_failure_comes_at_its_step_every_time(kind: str, error: type[Exception]) -> None:
    model = ScriptedModel({**SCRIPT, "failures": {"Who?": {"1": kind, "answer": kind}}})
    assert write(model, "Who?", 0).text == "One came."
    for _ in range(2):
        with pytest.raises(error, match="step 1"):
            write(model, "Who?", 1)
    with pytest.raises(error, match="step answer"):
        write(model, "Who?", 2, "line")


def test_an_interrupted_model_writes_nothing_more() -> None:
    model = ScriptedModel(SCRIPT)
    model.interrupt()
    with pytest.raises(Interrupted):
        write(model, "Who?")


def test_a_generation_that_is_cut_off_ends_alone() -> None:
    model, cancellation = ScriptedModel(SCRIPT), Cancellation()
    cancellation.cancel()
    with pytest.raises(Interrupted):
        model.generate(
            GenerationRequest(few_shot_prompt(demonstrations=Demonstrations(), question="Who?"), "sentence", 10),
            cancellation,
        )
    assert write(model, "Who?").text


def test_the_identity_changes_with_the_script_only(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT, indent=3))
    assert ScriptedModel(path).identity == ScriptedModel(SCRIPT).identity
    assert ScriptedModel(SCRIPT).identity.startswith("chain@")
    assert ScriptedModel({**SCRIPT, "context": 7}).identity != ScriptedModel(SCRIPT).identity


@pytest.mark.parametrize(
    "content", ["", "[]", '{"name": "x"}', '{"name": "x", "questions": {}, "failures": {"Q": {"0": "often"}}}']
)
def test_a_malformed_script_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"script\.json is malformed"):
        ScriptedModel(path)


# Several chains, and answers by paragraph


def sampled(script: Mapping[str, object], number: int, question: str = "Who?") -> str:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question=question)
    return ScriptedModel(script).generate(GenerationRequest(prompt, "line", 10, Sampling(seed=5, sample=number))).text


def test_samples_are_written_by_their_numbers_and_from_the_first_again() -> None:
    script = {"name": "x", "questions": {"Who?": {"answer": "I", "samples": ["One.", "Two."]}}}
    assert [sampled(script, number) for number in range(3)] == ["One.", "Two.", "One."]


@each_case("samples", [{}, {"samples": []}])
def test_without_samples_each_is_the_whole_chain(samples: dict[str, object]) -> None:
    script = {"name": "x", "questions": {"Who?": {"sentences": ["One.", "Two."], "answer": "I", **samples}}}
    assert sampled(script, 3) == "One. Two. So the answer is: I."


def test_a_sample_s_seed_is_kept_and_only_a_sample_has_one() -> None:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), question="Who?")
    model = ScriptedModel(SCRIPT)
    assert model.generate(GenerationRequest(prompt, "line", 10, Sampling(seed=5, sample=2))).seed == 5
    assert model.generate(GenerationRequest(prompt, "line", 10, Sampling(seed=5))).seed is None


def test_a_sample_fails_or_stays_empty_by_its_number() -> None:
    script = {**SCRIPT, "failures": {"Who?": {"sample 1": "empty", "sample 2": "permanent"}}}
    assert sampled(script, 0)
    assert sampled(script, 1) == ""
    with pytest.raises(StepError, match="step sample 2"):
        sampled(script, 2)


def test_a_question_is_known_behind_yes_or_no_too() -> None:
    assert sampled(SCRIPT, 0, "Think first.\nYes or no: Who?") == "One came. Two went. So the answer is: Three."


def test_an_answer_depends_on_the_last_paragraph_that_has_one_of_its_own() -> None:
    entry = {"answer": "I", "answers": {"some text": "she", "more": "he"}}
    model = ScriptedModel({"name": "x", "questions": {"Who?": entry}})
    assert write(model, "Who?", until="line").text == "she"
    texts = [("more", "some text", "none"), ("some text", "more"), ("none",), ()]
    prompts = [
        few_shot_prompt(
            demonstrations=Demonstrations(),
            paragraphs=tuple(Paragraph(id=text, title="T", text=text) for text in each),
            question="Who?",
        )
        for each in texts
    ]
    assert [model.generate(GenerationRequest(prompt, "line", 10)).text for prompt in prompts] == ["she", "he", "I", "I"]


def test_samples_and_answers_are_part_of_the_identity_once_a_script_has_them() -> None:
    entries: list[dict[str, object]] = [
        {"answer": "I"},
        {"answer": "I", "samples": ["I."]},
        {"answer": "I", "answers": {"x": "he"}},
    ]
    identities = [ScriptedModel({"name": "x", "questions": {"Who?": entry}}).identity for entry in entries]
    assert len(set(identities)) == 3
    assert identities[0] == f"x@{DIGEST}"


# Conversations

BUILT: dict[str, object] = {
    "name": "chat",
    "questions": {
        "Who built the tower?": {
            "answer": "Holm",
            "messages": ["[Query 1]: Which tower?\n[Answer 1]: Brenn", "[Query 2]: Who built Brenn?", "Holm."],
        },
        "Which tower?": {"answer": "Brenn", "answers": {"some text": "Amber"}, "confidence": 0.5},
        "Who": {"sentences": ["One came."], "answer": "Three"},
    },
}

BEGUN = Prompt(turns=(system("Write queries."), user("Go on: ", Asked("Who built the tower?"))))


def converse(
    prompt: Prompt, until: Until = "end", stop: tuple[str, ...] = (), max_tokens: int = 20, *, scored: bool = False
) -> Generated:
    return ScriptedModel(BUILT).generate(GenerationRequest(prompt, until, max_tokens, stop=stop, scored=scored))


def test_a_conversation_gets_the_messages_in_their_order_and_the_last_one_again() -> None:
    prompt, texts = BEGUN, []
    for _ in range(4):
        texts.append(converse(prompt).text)
        prompt = prompt.add(assistant(Written(texts[-1])), user("Reference: none."))
    entry = BUILT["questions"]["Who built the tower?"]  # type: ignore[index]
    assert texts == [*entry["messages"], "Holm."]


def test_a_turn_that_is_continued_gets_the_next_message_in_place() -> None:
    prompt = BEGUN.add(assistant(Written("[Query 1]: Which tower?"), "\n[Answer 1]: Brenn\n"))
    assert converse(prompt).text == "[Query 2]: Who built Brenn?"


def test_a_conversation_as_plain_text_with_stop_strings_gets_them_too() -> None:
    prompt = Prompt(turns=(plain("Question: ", Asked("Who built the tower?"), "\n"),))
    assert converse(prompt, "stop").text.startswith("[Query 1]")
    assert converse(prompt.append(Written("[Query 1]: Which tower?")), "stop").text.startswith("[Query 2]")


def test_a_sampled_conversation_gets_its_own_messages_and_the_last_one_again() -> None:
    entry = {"answer": "I", "samples": [["One?", "Two."], "All at once."]}
    model = ScriptedModel({"name": "x", "questions": {"Who?": entry}})

    def texts(sample: int) -> list[str]:
        prompt, written = Prompt(turns=(user(Asked("Who?")),)), []
        for _ in range(3):
            drawn = Sampling(sample=sample)
            written.append(model.generate(GenerationRequest(prompt, "stop", 10, drawn)).text)
            prompt = prompt.wrote(written[-1])
        return written

    assert [texts(sample) for sample in range(2)] == [["One?", "Two.", "Two."], ["All at once."] * 3]


def test_without_messages_a_conversation_gets_the_chain_or_the_answer() -> None:
    asked = [Asked("Who"), Asked("Which tower?")]
    assert [converse(Prompt(turns=(user(each),))).text for each in asked] == [
        "One came. So the answer is: Three.",
        "Brenn",
    ]
    shown = Shown(paragraph=Paragraph(id="p", title="T", text="some text"))
    assert converse(Prompt(turns=(user(shown, Asked("Which tower?")),))).text == "Amber"


def test_a_prompt_that_asks_nothing_is_about_the_longest_question_in_the_system_s_words() -> None:
    shown = Shown(paragraph=Paragraph(id="p", title="Who built the tower?", text="some text"))
    assert converse(Prompt(turns=(user("Now: Which tower?"), assistant(Written("Who?")), user(shown)))).text == "Amber"
    assert converse(Prompt(turns=(user("Which tower? Who built the tower?"),))).text.startswith("[Query 1]")
    with pytest.raises(StepError, match="no question"):
        converse(Prompt(turns=(user("Hello."),)))


@each_case(
    ("until", "stop", "max_tokens", "text", "raw", "ended"),
    [
        ("stop", ("\n[Answer", "Brenn"), 20, "[Query 1]: Which tower?", "[Query 1]: Which tower?\n[Answer", "stop"),
        ("line", (), 20, "[Query 1]: Which tower?", "[Query 1]: Which tower?\n[Answer 1]: Brenn", "until"),
        ("stop", (), 3, "[Query 1]: Which", "[Query 1]: Which", "length"),
        ("stop", ("no",), 7, "[Query 1]: Which tower?\n[Answer 1]: Brenn", None, "end"),
    ],
)
def test_a_message_ends_as_a_model_s_would(
    until: Until, stop: tuple[str, ...], max_tokens: int, text: str, raw: str | None, ended: str
) -> None:
    result = converse(BEGUN, until, stop, max_tokens, scored=True)
    assert (result.text, result.raw, result.ended) == (text, raw or text, ended)
    assert result.stop == (stop[0] if ended == "stop" else "")
    assert "".join(token for token, _ in result.tokens) == result.raw


def test_tokens_have_the_script_s_probability_where_they_are_asked_for() -> None:
    prompt = Prompt(turns=(user(Asked("Which tower?")),))
    assert converse(prompt, scored=True).tokens == (("Brenn", math.log(0.5)),)
    assert converse(prompt).tokens == ()
    assert {each for _, each in converse(BEGUN, scored=True).tokens} == {math.log(0.99)}


def test_a_message_calls_tools_where_there_are_any() -> None:
    message = 'I look.\n<tool_call>{"name": "search", "arguments": {"query": "Brenn"}}</tool_call>'
    model = ScriptedModel({"name": "x", "questions": {"Who?": {"answer": "I", "messages": [message]}}})
    prompt = Prompt(turns=(user(Asked("Who?")),))
    tools = (Tool(name="search", description="Finds pages.", parameters="{}"),)
    called = model.generate(GenerationRequest(replace(prompt, tools=tools), "end", 20))
    assert (called.calls, called.ended) == ((Call(name="search", arguments='{"query": "Brenn"}'),), "calls")
    assert (called.text.strip(), called.raw) == ("I look.", message)
    assert model.generate(GenerationRequest(prompt, "end", 20)).text == message


def test_a_message_fails_by_its_number() -> None:
    model = ScriptedModel({**BUILT, "failures": {"Who built the tower?": {"message 1": "permanent"}}})
    assert model.generate(GenerationRequest(BEGUN, "end", 20)).text
    with pytest.raises(StepError, match="step message 1"):
        model.generate(GenerationRequest(BEGUN.add(assistant(Written("so")), user("more")), "end", 20))


def test_messages_and_confidence_are_part_of_the_identity_once_a_script_has_them() -> None:
    entries: list[dict[str, object]] = [
        {"answer": "I"},
        {"answer": "I", "messages": ["I."]},
        {"answer": "I", "confidence": 0.99},
    ]
    identities = [ScriptedModel({"name": "x", "questions": {"Who?": entry}}).identity for entry in entries]
    assert len(set(identities)) == 3
    assert identities[0] == f"x@{DIGEST}"
