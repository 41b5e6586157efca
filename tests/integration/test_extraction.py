import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.entail import Extract
from cotrail.core.ports.encoders import MOST_TOKENS, Extractor
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Paragraph
from cotrail.core.results import Extracted
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.extraction.extractors import EXTRACTORS
from cotrail.errors import InputError, PromptTooLongError, StepError
from tests.integration.small_models import (
    LONGEST,
    NUMBERS,
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

PARTS = {name: value for name, value in SIZES.items() if name != "num_labels"}
KINDS = {
    "dpr": partial(small, "DPRReader", **PARTS),
    "bert": partial(small, "BertForQuestionAnswering", **PARTS),
    "albert": partial(small, "AlbertForQuestionAnswering", embedding_size=16, **PARTS),
    "roberta": partial(
        small, "RobertaForQuestionAnswering", **PARTS | {"type_vocab_size": 1, "max_position_embeddings": LONGEST + 2}
    ),
}
CLS, SEP = NUMBERS["[CLS]"], NUMBERS["[SEP]"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: saved(tmp_path_factory.mktemp(kind), make(), tokenizer(kind)) for kind, make in KINDS.items()}


def find(folder: Path) -> NamedEngine[Extractor]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "models.toml").write_text(f'[extractors.mine]\nengine = "transformers"\npath = "{folder}"\n')
    return EXTRACTORS.find(home / "models.toml", "mine")


def load(folder: Path, profile: Profile = "deterministic") -> Extractor:
    return find(folder).open(profile)


def actions(seed: int = 1, count: int = 24) -> list[Extract]:
    """Paragraphs of no, few and many words, some of them several times, some of them too long."""
    chance = random.Random(seed)

    def text(lengths: Sequence[int]) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.choice(lengths)))

    paragraphs = [
        Paragraph(id=str(n), title=chance.choice(["", "River", "Salt Sea"]), text=text([0, 3, 20, 30, 90]))
        for n in range(12)
    ]
    questions = [text([1, 5, 9]) for _ in range(6)]
    return [Extract(question=chance.choice(questions), paragraph=chance.choice(paragraphs)) for _ in range(count)]


def numbers(text: str) -> list[int]:
    return [NUMBERS[word.lower()] for word in text.split()]


def expected(kind: str, folder: Path, action: Extract) -> tuple[str, float]:
    """What the model itself says, shown tokens that are put together by hand: a text and a confidence."""
    import torch

    question, words = numbers(action.question), action.paragraph.text.split()
    if kind == "dpr":
        head, tail = [CLS, *question, SEP, *numbers(action.paragraph.title), SEP], []
    else:
        head, tail = [CLS, *question, SEP], [SEP]
    words = words[: LONGEST - len(head) - len(tail)]
    body = [*numbers(" ".join(words)), *tail]
    inputs = {"input_ids": torch.tensor([head + body])}
    if kind in ("bert", "albert"):
        inputs["token_type_ids"] = torch.tensor([[0] * len(head) + [1] * len(body)])
    with torch.inference_mode():
        read = type(KINDS[kind]()).from_pretrained(folder).eval()(**inputs)
    starts, ends = read.start_logits[0].tolist(), read.end_logits[0].tolist()
    spans = [
        (starts[len(head) + first] + ends[len(head) + last], -first, -last)
        for first in range(len(words))
        for last in range(first, min(first + MOST_TOKENS, len(words)))
    ]
    score, first, last = max(spans, default=(starts[0] + ends[0], 0, 1))
    confidence = read.relevance_logits[0].item() if kind == "dpr" else score - starts[0] - ends[0]
    return " ".join(words[-first : 1 - last]), confidence


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_an_answer_is_the_one_that_the_model_itself_gives(
    folders: dict[str, Path], kind: str, profile: Profile
) -> None:
    asked = actions(count=16)
    results = load(folders[kind], profile).extract(asked)
    assert max(len(action.paragraph.text.split()) for action in asked) > LONGEST
    for action, result in zip(asked, results, strict=True):
        text, confidence = expected(kind, folders[kind], action)
        assert result.text == text == action.paragraph.text[result.start : result.end]
        assert result.confidence == pytest.approx(confidence, abs=1e-4)
        assert result.confidence == round(result.confidence, 6)
    assert len({result.text for result in results}) > 4


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_paragraph_without_text_has_no_answer(folders: dict[str, Path], kind: str) -> None:
    asked = Extract(question="the river", paragraph=Paragraph(id="p", title="Sea", text=""))
    (result,) = load(folders[kind]).extract([asked])
    assert (result.text, result.start, result.end) == ("", 0, 0)
    assert result.confidence == pytest.approx(expected(kind, folders[kind], asked)[1], abs=1e-4)
    assert (result.confidence == 0.0) == (kind != "dpr")


@pytest.mark.parametrize("kind", ["dpr", "bert"])
def test_deterministic_answers_have_the_same_bits_whatever_else_is_read(folders: dict[str, Path], kind: str) -> None:
    reader, bits = load(folders[kind]), []
    handle = reader._model.register_forward_hook(  # type: ignore[attr-defined]
        lambda *call: bits.append(call[2].start_logits.cpu().numpy().tobytes())
    )
    asked = actions(seed=4)
    distinct = list(dict.fromkeys((action.question, action.paragraph) for action in asked))
    whole = reader.extract(asked)
    together = bits[:]
    assert len(together) <= len(distinct) < len(asked)
    bits.clear()
    assert reader.extract(asked[::-1]) == whole[::-1]
    assert sorted(bits) == sorted(together)
    handle.remove()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: reader.extract([each])[0], asked)) == whole


def close(one: Sequence[Extracted], other: Sequence[Extracted]) -> bool:
    return all(
        (a.text, a.start, a.end) == (b.text, b.start, b.end) and a.confidence == pytest.approx(b.confidence, abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("kind", ["dpr", "bert"])
def test_fast_reads_paragraphs_of_like_lengths_together(
    folders: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cotrail.engines.extraction import transformers as adapter

    monkeypatch.setattr(adapter, "TOKENS_AT_ONCE", {"cpu": 120, "cuda": 120})
    reader, shapes = load(folders[kind], "fast"), []
    handle = reader._model.register_forward_hook(  # type: ignore[attr-defined]
        lambda *call: shapes.append(tuple(call[2].start_logits.shape))
    )
    asked = actions(seed=5)
    results = reader.extract(asked)
    handle.remove()
    assert 1 < len(shapes) < sum(rows for rows, _ in shapes)
    assert all(rows * width <= 120 for rows, width in shapes)
    assert close(results, load(folders[kind]).extract(asked))


def test_what_does_not_fit_memory_in_one_pass_is_done_in_several(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, asked = load(folders["bert"], "fast"), actions(seed=6)
    whole = load(folders["bert"]).extract(asked)
    model = reader._model  # type: ignore[attr-defined]
    several_passes(model, lambda: reader.extract(asked), lambda found: close(found, whole), monkeypatch)


@pytest.mark.parametrize(("kind", "marks"), [("dpr", 4), ("bert", 3)])
def test_a_question_is_kept_whole_and_fails_where_it_leaves_no_room(
    folders: dict[str, Path], kind: str, marks: int
) -> None:
    reader = load(folders[kind])
    paragraph = Paragraph(id="p", title="Sea" if kind == "dpr" else "", text="the old river")
    most = LONGEST - marks - 1  # marks and DPR's title, and one word of the paragraph
    (last,) = reader.extract([Extract(question="sea " * most, paragraph=paragraph)])
    assert last.text == "the"
    with pytest.raises(PromptTooLongError, match=f"takes {LONGEST} tokens"):
        reader.extract([Extract(question="sea " * (most + 1), paragraph=paragraph)])


def test_nothing_asked_is_nothing_read(folders: dict[str, Path]) -> None:
    assert load(folders["dpr"]).extract([]) == []


def test_a_dpr_reader_with_its_own_tokenizer_finds_its_answer_in_the_text(tmp_path: Path) -> None:
    from transformers import DPRConfig, DPRReader, DPRReaderTokenizerFast

    words: Any = DPRReaderTokenizerFast
    made = words(vocab={word: number for number, word in enumerate([*SPECIAL, "[MASK]", *WORDS, "##s"])})
    saved(tmp_path, DPRReader(DPRConfig(**PARTS | {"vocab_size": len(SPECIAL) + len(WORDS) + 2})), made)
    paragraph = Paragraph(id="p", title="River", text="The rivers flows  into a SEA, of salt.")
    (result,) = load(tmp_path).extract([Extract(question="Where?", paragraph=paragraph)])
    assert result.text
    assert result.text == paragraph.text[result.start : result.end]


@pytest.mark.parametrize(("model", "lacks"), [("BertModel", "qa_outputs"), ("DPRContextEncoder", "span_")])
def test_a_model_that_is_no_reader_is_refused(tmp_path: Path, model: str, lacks: str) -> None:
    saved(tmp_path, small(model, **PARTS), tokenizer("bert"))
    with pytest.raises(InputError, match=rf"holds no reader: its weights lack .*{lacks}"):
        load(tmp_path)


def test_a_folder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="transformers can't load"):
        load(broken(tmp_path))


def test_weights_that_are_no_numbers_fail_the_step(folders: dict[str, Path]) -> None:
    import torch

    reader = load(folders["bert"])
    torch.nn.init.constant_(reader._model.qa_outputs.bias, float("nan"))  # type: ignore[attr-defined]
    with pytest.raises(StepError, match="its weights are broken"):
        reader.extract(actions(count=1))


def test_the_identity_is_known_before_the_model_is_loaded(folders: dict[str, Path]) -> None:
    spec = find(folders["dpr"])
    assert spec.identity() == spec.open("fast").identity
    assert spec.identity() != find(folders["bert"]).identity()
