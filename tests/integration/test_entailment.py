import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.entail import Entail
from cotrail.core.ports.encoders import Entailer
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Paragraph
from cotrail.core.results import Entailed
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.entailment.entailers import ENTAILERS
from cotrail.errors import InputError, PromptTooLongError
from tests.integration.small_models import (
    LONGEST,
    ROBERTA,
    SIZES,
    SPECIAL,
    WORDS,
    broken,
    saved,
    several_passes,
    small,
    tokenizer,
)

pytestmark = pytest.mark.usefixtures("transformers")

KINDS: dict[str, Callable[..., Any]] = {
    "bert": lambda **more: small("BertForSequenceClassification", **SIZES | more),
    "albert": lambda **more: small("AlbertForSequenceClassification", embedding_size=16, **SIZES | more),
    "roberta": lambda **more: small("RobertaForSequenceClassification", **ROBERTA | more),
}
ORDER = ("neutral", "contradiction", "entailment")


def save(path: Path, kind: str, labels: Sequence[str] | None = ORDER) -> Path:
    """A model of this kind with these labels."""
    model = KINDS[kind](**({"num_labels": len(labels)} if labels else {}))
    if labels:
        model.config.id2label = dict(enumerate(labels))
        model.config.label2id = {label: number for number, label in enumerate(labels)}
    return saved(path, model, tokenizer(kind))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: save(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def no_model() -> Any:
    raise AssertionError("no language model is needed")


def find(folder: Path, more: str = "") -> NamedEngine[Entailer]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "models.toml").write_text(f'[entailers.mine]\nengine = "transformers"\npath = "{folder}"\n{more}\n')
    return ENTAILERS.find(home / "models.toml", "mine")


def load(folder: Path, profile: Profile = "deterministic", more: str = "") -> Entailer:
    return find(folder, more).open(profile, no_model)


def actions(seed: int = 1, count: int = 24) -> list[Entail]:
    """Premises of few and of many words, some of them several times, some of them too long."""
    chance = random.Random(seed)

    def text(lengths: Sequence[int]) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.choice(lengths)))

    premises = [
        Paragraph(id=str(n), title=chance.choice(["", "River"]), text=text([0, 3, 20, 30, 90])) for n in range(12)
    ]
    hypotheses = [text([1, 5, 9]) for _ in range(6)]
    return [Entail(premise=chance.choice(premises), hypothesis=chance.choice(hypotheses)) for _ in range(count)]


def probabilities(result: Entailed) -> list[float]:
    return [result.entailment, result.neutral, result.contradiction]


def expected(kind: str, folder: Path, action: Entail) -> list[float]:
    """What the model itself says, shown tokens that are put together by hand."""
    import torch

    model = type(KINDS[kind]()).from_pretrained(folder)
    numbers = {word: n for n, word in enumerate(SPECIAL + WORDS)}
    premise = [numbers[word.lower()] for word in action.premise.statement.split()]
    hypothesis = [*(numbers[word] for word in action.hypothesis.split()), numbers["[SEP]"]]
    first = [numbers["[CLS]"], *premise[: LONGEST - len(hypothesis) - 2], numbers["[SEP]"]]
    inputs = {"input_ids": torch.tensor([first + hypothesis])}
    if kind != "roberta":
        inputs["token_type_ids"] = torch.tensor([[0] * len(first) + [1] * len(hypothesis)])
    with torch.inference_mode():
        row = torch.softmax(model.eval()(**inputs).logits[0].double(), dim=-1).tolist()
    by_label = dict(zip(ORDER, row, strict=True))
    return [by_label[label] for label in ("entailment", "neutral", "contradiction")]


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_pair_is_judged_as_the_model_itself_does(folders: dict[str, Path], kind: str, profile: Profile) -> None:
    asked = actions(count=10)
    results = load(folders[kind], profile).judge(asked)
    assert max(len(action.premise.statement.split()) for action in asked) > LONGEST
    for action, result in zip(asked, results, strict=True):
        assert probabilities(result) == pytest.approx(expected(kind, folders[kind], action), abs=1e-5)
        assert sum(round(each * 10**6) for each in probabilities(result)) == 10**6
    assert len({str(result) for result in results}) > 5


def test_deterministic_judgements_have_the_same_bits_whatever_else_is_judged(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    entailer, bits = load(folders["albert"]), []
    handle = entailer._model.register_forward_hook(  # type: ignore[attr-defined]
        lambda *call: bits.append(call[2].logits.cpu().numpy().tobytes())
    )
    asked = actions(seed=4)
    distinct = list(dict.fromkeys((action.premise.statement, action.hypothesis) for action in asked))
    whole = entailer.judge(asked)
    together = bits[:]
    assert len(together) == len(distinct) < len(asked)
    bits.clear()
    assert entailer.judge(asked[::-1]) == whole[::-1]
    assert sorted(bits) == sorted(together)
    bits.clear()
    assert [entailer.judge([each])[0] for each in asked] == whole
    assert set(bits) == set(together)
    handle.remove()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: entailer.judge([each])[0], asked)) == whole


def close(one: Sequence[Entailed], other: Sequence[Entailed]) -> bool:
    return all(probabilities(a) == pytest.approx(probabilities(b), abs=1e-5) for a, b in zip(one, other, strict=True))


def test_fast_reads_pairs_of_like_lengths_together(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from cotrail.engines.entailment import transformers as adapter

    monkeypatch.setattr(adapter, "TOKENS_AT_ONCE", {"cpu": 120, "cuda": 120})
    entailer, shapes = load(folders["bert"], "fast"), []
    handle = entailer._model.bert.embeddings.register_forward_hook(  # type: ignore[attr-defined]
        lambda _, __, made: shapes.append(tuple(made.shape[:2]))
    )
    asked = actions(seed=5)
    results = entailer.judge(asked)
    handle.remove()
    assert 1 < len(shapes) < sum(rows for rows, _ in shapes)
    assert [width for _, width in shapes] == sorted((width for _, width in shapes), reverse=True)
    assert all(rows * width <= 120 for rows, width in shapes)
    assert close(results, load(folders["bert"]).judge(asked))


def test_what_does_not_fit_memory_in_one_pass_is_done_in_several(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    entailer, asked = load(folders["bert"], "fast"), actions(seed=6)
    whole = load(folders["bert"]).judge(asked)
    model = entailer._model  # type: ignore[attr-defined]
    several_passes(model, lambda: entailer.judge(asked), lambda found: close(found, whole), monkeypatch)


def test_a_hypothesis_that_leaves_no_room_for_a_premise_fails(folders: dict[str, Path]) -> None:
    premise = Paragraph(id="p", title="", text="the old river")
    entailer = load(folders["roberta"])
    most = LONGEST - 3 - 1  # three marks, and one word of the premise
    assert entailer.judge([Entail(premise=premise, hypothesis="sea " * most)])
    with pytest.raises(PromptTooLongError, match=f"takes {LONGEST} tokens"):
        entailer.judge([Entail(premise=premise, hypothesis="sea " * (most + 1))])


def test_nothing_asked_is_nothing_judged(folders: dict[str, Path]) -> None:
    assert load(folders["bert"]).judge([]) == []


# Labels

ORDERS = [
    ("entailment", "neutral", "contradiction"),
    ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
    ("Neutral", "Contradiction", "Entailment"),
]


@pytest.mark.parametrize("labels", ORDERS)
def test_the_order_of_the_labels_is_the_configuration_s(tmp_path: Path, labels: tuple[str, ...]) -> None:
    asked = actions(count=4)
    results = load(save(tmp_path, "bert", labels)).judge(asked)
    for action, result in zip(asked, results, strict=True):
        mapped = dict(zip(ORDER, (label.lower() for label in labels), strict=True))
        at = dict(zip(("entailment", "neutral", "contradiction"), expected("bert", tmp_path, action), strict=True))
        for name, label in mapped.items():
            assert getattr(result, label) == pytest.approx(at[name], abs=1e-5)


def test_labels_without_names_are_refused_unless_they_are_given(tmp_path: Path) -> None:
    folder = save(tmp_path, "albert", None)
    with pytest.raises(InputError, match=r'LABEL_0, 1: LABEL_1.*labels = \["entailment", "neutral", "contradiction"\]'):
        load(folder)
    given = 'labels = ["neutral", "contradiction", "entailment"]'
    asked = actions(count=3)
    results = load(folder, more=given).judge(asked)
    for action, result in zip(asked, results, strict=True):
        assert probabilities(result) == pytest.approx(expected("albert", folder, action), abs=1e-5)
    other = 'labels = ["entailment", "neutral", "contradiction"]'
    assert len({find(folder, more).identity("") for more in ("", given, other)}) == 3


@pytest.mark.parametrize(
    ("labels", "more", "problem"),
    [
        (("entailment", "not_entailment"), "", "2 classes"),
        (("yes", "no", "perhaps"), "", "0: yes, 1: no, 2: perhaps, which leaves"),
        (ORDER, 'labels = ["entailment", "neutral", "contradiction"]', "correct the one that is wrong"),
    ],
)
def test_a_model_with_other_labels_is_refused(tmp_path: Path, labels: tuple[str, ...], more: str, problem: str) -> None:
    folder = save(tmp_path, "bert", labels)
    with pytest.raises(InputError, match=problem):
        load(folder, more=more)


def test_a_model_without_a_classifier_is_refused(tmp_path: Path) -> None:
    small("BertModel", **SIZES).save_pretrained(tmp_path)
    tokenizer("bert").save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"holds no classifier: .*classifier\.bias"):
        load(tmp_path)


def test_a_folder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="transformers can't load"):
        load(broken(tmp_path))


def test_the_identity_is_known_before_the_model_is_loaded(folders: dict[str, Path]) -> None:
    spec = find(folders["bert"])
    assert spec.identity("a@1") == spec.identity("b@2") == spec.open("fast", no_model).identity
    assert spec.identity("a@1") != find(folders["albert"]).identity("a@1")
