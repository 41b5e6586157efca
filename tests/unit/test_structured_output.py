"""Texts that follow a schema or are one of several words, and models that are asked again for them."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import MOST_ASKED, Read, generate
from cotrail.core.actions.kind import Engines
from cotrail.core.binding import Binding
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, plain, user
from cotrail.core.results import Generated
from cotrail.core.structured_output import Form
from cotrail.errors import UnansweredError
from tests.cases import each_case

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"answer": {"type": "string"}, "pages": {"type": "array", "items": {"type": "integer"}}},
        "required": ["answer"],
        "additionalProperties": False,
    }
)
CHAT = Prompt(turns=(user("Who built it?"),))


@each_case(
    "text",
    [
        '{"answer": "Brenn", "pages": [1]}',
        ' \n{"pages": [1], "answer": "Brenn"}\n',
        'Here it is:\n```json\n{"answer": "Brenn", "pages": [1]}\n```\nGood luck.',
        'The answer is {"answer": "Brenn", "pages": [1]}, I think.',
    ],
)
def test_json_is_found_where_models_put_it(text: str) -> None:
    fitted, problem = Form(schema=SCHEMA).fit(text)
    assert (json.loads(fitted), problem) == ({"answer": "Brenn", "pages": [1]}, "")


@each_case(
    ("text", "problem"),
    [
        ("Brenn", "it isn't JSON"),
        ("", "it isn't JSON"),
        ("{}", "'answer' is a required property"),
        ('{"answer": 3}', "3 is not of type 'string'"),
        ('{"answer": "a", "more": 1}', "Additional properties"),
        ('{"answer": "a", "pages": [NaN]}', "NaN is no number"),
        ('{"answer": "a", "pages": [1e999]}', "1e999 is too large a number"),
        ('{"answer": "a\\u0000b"}', "a NUL character"),
        ('{"answer": "\\ud800"}', "surrogates not allowed"),
        ("[" * 100_000, "it isn't JSON"),
        ("[" * 300_000, "characters"),
    ],
)
def test_what_does_not_fit_is_said(text: str, problem: str) -> None:
    fitted, said = Form(schema=SCHEMA).fit(text)
    assert fitted == ""
    assert problem in said
    assert len(said) < 400


@each_case(("text", "choice"), [("yes", "Yes"), (" Yes.\n", "Yes"), ('"No"', "No"), ("**no**", "No")])
def test_a_word_is_told_whatever_stands_around_it(text: str, choice: str) -> None:
    assert Form(choices=("Yes", "No")).fit(text) == (choice, "")


@each_case("text", ["Yes and no", "maybe", ""])
def test_another_word_is_none_of_them(text: str) -> None:
    fitted, problem = Form(choices=("Yes", "No")).fit(text)
    assert (fitted, problem) == ("", "it has to be one of these words, and nothing else: Yes, No")


@each_case(
    "form",
    [
        Form(schema="{"),
        Form(schema='{"type": "thing"}'),
        Form(schema="{}", choices=("a",)),
        Form(schema=f'"{"a" * 200_000}"'),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_with_the_action(form: Form) -> None:
    with pytest.raises(ValueError, match=r"schema"):
        Read(prompt=CHAT, max_tokens=9, schema=form.schema, choices=form.choices)


def test_a_schema_fetches_nothing() -> None:
    elsewhere = Form(schema='{"$ref": "http://127.0.0.1:9/schema.json"}')
    assert elsewhere.fit("1") == ("", "it can't be checked: _WrappedReferencingError")


@given(st.text())
def test_whatever_a_model_writes_is_survived(text: str) -> None:
    for form in (Form(schema=SCHEMA), Form(choices=("Yes", "No")), Form()):
        fitted, problem = form.fit(text)
        assert not (fitted and problem)
    assert Form().fit(text) == (text, "")


class Writing:
    """A model that writes one text after the other, and notes what it is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[Prompt] = []

    def generate(self, request: GenerationRequest, cancellation: object = None) -> Generated:
        self.asked.append(request.prompt)
        text, digest = self.texts.pop(0), request.prompt.digest
        counts: dict[str, Any] = {"prompt_tokens": 7, "cached_prompt_tokens": 0, "generated_tokens": 3}
        return Generated(text=text, raw=text, demonstrations=0, paragraphs=0, prompt_digest=digest, **counts)


def carried_out(model: Writing, **action: Any) -> Generated:
    class Made:
        binding = Binding(model="m@1", seed=0, temperature=0.0, profile="fast")
        cancellation = None

        def language_model(self, role: str) -> Any:
            return model

    fields: dict[str, Any] = {"prompt": CHAT, "max_tokens": 20, "until": "end"} | action
    read = Read(**fields)
    return generate(read, cast(Engines, Made()))


def test_a_model_is_asked_again_until_its_text_fits() -> None:
    model = Writing("Well.", "Maybe", "yes")
    result = carried_out(model, choices=("Yes", "No"))
    assert (result.text, result.prompt_tokens, result.generated_tokens) == ("Yes", 21, 9)
    assert result.prompt_digest == CHAT.digest
    assert [len(prompt.turns) for prompt in model.asked] == [1, 3, 5]
    assert "one of these words" in model.asked[1].turns[-1].text
    assert model.asked[1].turns[1].text == "Well."


def test_a_model_that_never_fits_has_not_answered() -> None:
    model = Writing(*["Well."] * MOST_ASKED)
    with pytest.raises(UnansweredError, match=r"another form.*one of these words") as caught:
        carried_out(model, choices=("Yes", "No"))
    assert len(model.asked) == MOST_ASKED
    assert isinstance(caught.value.written, Generated)
    assert caught.value.written.generated_tokens == 3 * MOST_ASKED


def test_plain_text_is_asked_for_once() -> None:
    model = Writing("Well.")
    with pytest.raises(UnansweredError):
        carried_out(model, choices=("Yes", "No"), prompt=Prompt(turns=(plain("Is it so?"),)))
    assert len(model.asked) == 1
