import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.entail import Entail
from cotrail.core.ports.encoders import entailed
from cotrail.core.questions import Paragraph
from cotrail.core.results import Entailed
from cotrail.engines.engine_catalogue import BuiltIn
from cotrail.engines.entailment.entailers import CHOICES, ENTAILERS, PromptedEntailer, ScriptedEntailer
from cotrail.engines.entailment.labels import Label, Order, label_order
from cotrail.engines.language_models.scripted import ScriptedModel
from cotrail.errors import InputError, NotInstalledError, PromptTooLongError, UnknownNameError
from tests.cases import each_case

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea. It is a river of Ostmark.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")


def no_model() -> ScriptedModel:
    raise AssertionError("no language model is needed")


# Probabilities


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda each: sum(each) > 1e-3))
def test_rounded_probabilities_still_add_up_to_one(weights: list[float]) -> None:
    exact = [weight / sum(weights) for weight in weights]
    result = entailed(*exact)
    rounded = [result.entailment, result.neutral, result.contradiction]
    assert sum(round(each * 10**6) for each in rounded) == 10**6
    assert all(0 <= each <= 1 and each == round(each, 6) for each in rounded)
    assert rounded == pytest.approx(exact, abs=2e-6)


# Labels

E: Label = "entailment"
N: Label = "neutral"
C: Label = "contradiction"


@each_case(
    ("names", "order"),
    [
        ([E, N, C], (E, N, C)),
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], (C, N, E)),
        (["Contradictory", "entailed", " Neutral"], (C, E, N)),
        (["neutral", "contradicts", "entails"], (N, C, E)),
    ],
)
def test_labels_are_read_by_their_names_in_any_order(names: list[str], order: Order) -> None:
    generic = {f"LABEL_{n}": n for n in range(3)}
    tables = dict(enumerate(names)), {name: n for n, name in enumerate(names)}
    assert label_order(*tables) == order
    assert label_order(tables[0], generic) == order
    assert label_order({n: name for name, n in generic.items()}, tables[1]) == order
    assert label_order(tables[0], None) == order
    assert label_order(*tables, configured=order) == order


def test_given_labels_decide_where_the_configuration_says_nothing() -> None:
    generic = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    assert label_order(generic, {name: n for n, name in generic.items()}, (E, N, C)) == (E, N, C)


@each_case(
    ("id2label", "label2id", "given", "problem"),
    [
        ({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {}, None, r"0: LABEL_0.*say it as labels = \["),
        ({0: "a", 1: "b", 2: "c"}, {"x": 0, "y": 1, "z": 2}, None, "and elsewhere 0: x, 1: y, 2: z, which leaves"),
        ({0: E, 1: "not_entailment", 2: N}, {}, None, "leaves their meaning open"),
        ({0: E, 1: E, 2: N}, {}, None, "leaves their meaning open"),
        ({0: E, 1: N, 2: C}, {E: 2, N: 1, C: 0}, None, "elsewhere 0: contradiction.*leaves their meaning open"),
        ({0: E, 1: N, 2: C}, {E: 0, N: 1, C: 2}, (C, N, E), "given as contradiction, neutral, entailment: correct"),
        ({0: E, 1: N, 2: C}, {E: 2, N: 1, C: 0}, (E, N, C), "correct the one that is wrong"),
        ({0: E, 1: "not_entailment"}, {}, None, "2 classes.*take another"),
        ({0: E, 1: "not_entailment"}, {}, (E, N, C), "2 classes.*take another"),
        ({n: f"LABEL_{n}" for n in range(5)}, {}, None, "5 classes"),
        ({0: E, 1: N, 3: C}, {}, None, "3 classes"),
        (None, None, None, "0 classes"),
    ],
)
def test_unclear_labels_are_refused(
    id2label: dict[int, str] | None, label2id: dict[str, int] | None, given: Order | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        label_order(id2label, label2id, given)


# Scripts

SCRIPT = {
    "judgements": {
        "Vell": {"The Vell is long.": {"entailment": 0.75, "contradiction": 0.125}},
        "The Vell is a river.": {"The Vell is wet.": {"entailment": 1.0}},
        "Amber Sea": {"The Vell is long.": {"entailment": 0.5}, "The Vell is wet.": {"entailment": 0.25}},
        "flows into the Amber Sea": {"The Vell is wet.": {"contradiction": 0.5}},
    },
    "default": {"contradiction": 0.0625},
}
UNKNOWN = Entailed(entailment=0.0, neutral=0.9375, contradiction=0.0625)


@each_case(
    ("premise", "hypothesis", "expected"),
    [
        (VELL, "The Vell is long.", Entailed(entailment=0.75, neutral=0.125, contradiction=0.125)),
        (VELL, "The Vell is wet.", Entailed(entailment=0.0, neutral=0.5, contradiction=0.5)),
        (FACT, "The Vell is wet.", Entailed(entailment=1.0, neutral=0.0, contradiction=0.0)),
        (FACT, "The Vell is long.", Entailed(entailment=0.75, neutral=0.125, contradiction=0.125)),
        (FACT, "So?", UNKNOWN),
        (VELL, "So?", UNKNOWN),
    ],
)
def test_a_script_knows_premises_by_title_text_or_a_piece(
    premise: Paragraph, hypothesis: str, expected: Entailed
) -> None:
    assert ScriptedEntailer(SCRIPT).judge([Entail(premise=premise, hypothesis=hypothesis)]) == [expected]


def test_a_script_s_identity_is_its_content(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT, indent=3, sort_keys=True))
    (tmp_path / "models.toml").write_text('[entailers.mine]\nengine = "scripted"\npath = "script.json"\n')
    spec = ENTAILERS.find(tmp_path / "models.toml", "mine")
    opened = spec.open("fast", no_model)
    assert spec.identity("m@1") == spec.identity("m@2") == opened.identity == ScriptedEntailer(SCRIPT, "mine").identity
    assert spec.identity("m@1") != ScriptedEntailer(SCRIPT | {"default": {}}, "mine").identity


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "malformed"),
        ('{"default": {"entailment": 0.75, "contradiction": 0.5}}', "malformed.*more than 1"),
        ('{"default": {"entailment": -0.5}}', "malformed.*from 0 to 1"),
        ('{"default": {"neutral": 0.5}}', "no key `neutral`"),
    ],
)
def test_a_broken_script_says_what_is_wrong(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "script.json").write_text(content)
    (tmp_path / "models.toml").write_text('[entailers.mine]\nengine = "scripted"\npath = "script.json"\n')
    spec = ENTAILERS.find(tmp_path / "models.toml", "mine")
    with pytest.raises(InputError, match=problem):
        spec.identity("")


# A language model in an entailer's place


def prompted(table: dict[str, Sequence[float]], context: int = 100_000) -> PromptedEntailer:
    script = {"name": "s", "questions": {}, "context": context, "probabilities": table}
    return PromptedEntailer(ScriptedModel(script), "prompted@1")


def test_a_language_model_s_answers_are_weighed_against_those_without_the_premise() -> None:
    question = "Question: The Vell is wet. True"
    entailer = prompted({f"Ostmark.\n{question}": (6, 2, 2), question: (6, 1, 3)})
    (result,) = entailer.judge([Entail(premise=VELL, hypothesis="The Vell is wet.")])
    parts = [6 / 6, 2 / 1, 2 / 3]
    assert [result.entailment, result.neutral, result.contradiction] == pytest.approx(
        [part / sum(parts) for part in parts], abs=1e-6
    )


def test_a_language_model_is_asked_for_true_neither_and_false() -> None:
    assert CHOICES == (" True", " Neither", " False")
    entailer = prompted({"\n\n\nQuestion: b": (1, 1, 1), "Ostmark.\nQuestion: b": (8, 1, 1)})
    results = entailer.judge([Entail(premise=VELL, hypothesis=h) for h in ("a", "b", "a")])
    assert results[0] == results[2] == Entailed(entailment=0.333334, neutral=0.333333, contradiction=0.333333)
    assert results[1] == Entailed(entailment=0.8, neutral=0.1, contradiction=0.1)


def test_a_premise_that_is_too_long_is_cut_at_its_end() -> None:
    words = Paragraph(id="w", title="Words", text="word " * 1000)
    entailer = prompted({"Words\nword word": (8, 1, 1), "Question: b": (1, 1, 1)}, context=300)
    assert entailer.judge([Entail(premise=words, hypothesis="b")])[0].entailment == 0.8
    with pytest.raises(PromptTooLongError):
        entailer.judge([Entail(premise=words, hypothesis="b " * 300)])


def test_what_a_language_model_never_says_divides_nothing_by_zero() -> None:
    question = "Question: b True"
    entailer = prompted({f"Ostmark.\n{question}": (1, 1e-12, 1e-12), question: (1e-300, 1, 1)})
    assert entailer.judge([Entail(premise=VELL, hypothesis="b")])[0].entailment == 1.0


def test_the_identity_of_a_prompt_holds_the_model_s(tmp_path: Path) -> None:
    spec = ENTAILERS.find(tmp_path / "models.toml", "prompted")
    model = ScriptedModel({"name": "s", "questions": {}})
    assert spec.identity(model.identity) == spec.open("fast", lambda: model).identity
    assert spec.identity("m@1").startswith("prompted@")
    assert spec.identity("m@1").endswith("+m@1")


# The catalogue


@each_case(
    ("content", "problem"),
    [
        ("[entailers.m]", "the entailer m .*`engine` is missing; there are: transformers, scripted"),
        ('[entailers.m]\nengine = "prompted"', "there are: transformers, scripted"),
        ('[entailers.m]\nengine = "transformers"', "`path` is missing; the keys are: path, labels"),
        ('[entailers.m]\nengine = "transformers"\npath = "x"\nlabels = ["entailment"]', "labels"),
        (
            '[entailers.m]\nengine = "transformers"\npath = "x"\nlabels = ["yes", "no", "perhaps"]',
            "labels.*yes.*there are: ",
        ),
        (f'[entailers.m]\nengine = "transformers"\npath = "x"\nlabels = {[E, E, N]}', "each once"),
        ('[entailers.prompted]\nengine = "scripted"\npath = "x"', "built-in entailer"),
    ],
)
def test_a_broken_list_says_what_is_wrong(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "models.toml").write_text(content)
    with pytest.raises(InputError, match=problem):
        ENTAILERS.find(tmp_path / "models.toml", content.partition("]")[0].removeprefix("[entailers."))


def test_an_unknown_entailer_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="albert-xxlarge-anli, prompted, roberta-large-anli"):
        ENTAILERS.find(tmp_path / "models.toml", "theirs")


@pytest.mark.parametrize(
    ("at_hand", "name", "instead"),
    [
        ({"albert", "roberta"}, "albert-xxlarge-anli", []),
        ({"roberta"}, "roberta-large-anli", ["stands in for albert-xxlarge-anli", "hf download ynie/albert"]),
        (set(), "prompted", ["stands in for albert-xxlarge-anli", "ynie/albert", "hf download ynie/roberta"]),
    ],
)
def test_the_default_is_the_paper_s_model_or_says_what_it_stands_in_for(
    tmp_path: Path, at_hand: set[str], name: str, instead: list[str]
) -> None:
    def cached(each: Any) -> Path:
        (repository,) = each.folder.args
        if not any(each in repository for each in at_hand):
            raise NotInstalledError(f"hf download {repository}")
        return tmp_path

    published = {
        name: replace(each, folder=partial(cached, each)) if isinstance(each, BuiltIn) else each
        for name, each in ENTAILERS.built_in.items()
    }
    entailers = replace(ENTAILERS, built_in=published)
    spec = entailers.find(tmp_path / "models.toml", None)
    assert spec.name == name
    assert bool(spec.instead) == bool(instead)
    assert all(part in spec.instead for part in instead)
    if "albert" not in at_hand:
        with pytest.raises(NotInstalledError, match="hf download ynie/albert"):
            entailers.find(tmp_path / "models.toml", "albert-xxlarge-anli")
