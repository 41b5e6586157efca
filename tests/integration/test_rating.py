import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.actions.embed import Rate
from cotrail.core.ports.encoders import Rater, second_texts
from cotrail.core.ports.language_model import Profile
from cotrail.core.questions import Paragraph
from cotrail.core.results import Rated
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.model_folders import METADATA
from cotrail.engines.rating.raters import RATERS
from cotrail.errors import InputError, StepError
from tests.integration.served import Served, computed
from tests.integration.small_models import (
    LONGEST,
    NUMBERS,
    ROBERTA,
    SIZES,
    WORDS,
    broken,
    colbert,
    saved,
    small,
    tokenizer,
)


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed")


ONE = {"num_labels": 1}
LOGIT = {"activation_fn": "torch.nn.modules.linear.Identity"}


def save(path: Path, model: Any, kind: str = "bert") -> Path:
    words = tokenizer(kind)
    words.model_max_length = LONGEST
    return saved(path, model, words)


@pytest.fixture(scope="module")
def duplicates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As Quora's are: RoBERTa, whose configuration says nothing of its output, which then is a probability."""
    model = small("RobertaForSequenceClassification", **ROBERTA | ONE)
    return save(tmp_path_factory.mktemp("duplicates"), model, "roberta")


@pytest.fixture(scope="module")
def relevance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As MS MARCO's are: BERT, whose configuration says that its output is the score."""
    model = small("BertForSequenceClassification", sentence_transformers=LOGIT, **SIZES | ONE)
    return save(tmp_path_factory.mktemp("relevance"), model)


def find(folder: Path) -> NamedEngine[Rater]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "models.toml").write_text(f'[raters.mine]\nengine = "sentence-transformers"\npath = "{folder}"\n')
    return RATERS.find(home / "models.toml", "mine")


def load(folder: Path, profile: Profile = "deterministic") -> Rater:
    return find(folder).open(profile)


def actions(seed: int = 1, count: int = 8) -> list[Rate]:
    """Texts and paragraphs of few and many words, some of them several times, and none in some."""
    chance = random.Random(seed)

    def text(most: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, most)))

    others = [text(9) for _ in range(6)]
    paragraphs = [Paragraph(id=str(n), title=chance.choice(["", "River"]), text=text(25)) for n in range(6)]
    return [
        Rate(
            by="relevance",
            text=text(9),
            others=tuple(chance.choices(others, k=chance.randrange(4))),
            paragraphs=tuple(chance.choices(paragraphs, k=chance.randrange(4))),
        )
        for _ in range(count)
    ]


def logits(folder: Path, model: Any, action: Rate) -> list[float]:
    """What the model itself says, shown tokens that are put together by hand."""
    import torch
    from transformers import BertForSequenceClassification

    def score(text: str, other: str) -> float:
        first, second = ([NUMBERS[word.lower()] for word in each.split()] for each in (text, other))
        parts = [[NUMBERS["[CLS]"], *first, NUMBERS["[SEP]"]], [*second, NUMBERS["[SEP]"]]]
        inputs = {"input_ids": torch.tensor([parts[0] + parts[1]])}
        if model is BertForSequenceClassification:
            inputs["token_type_ids"] = torch.tensor([[0] * len(parts[0]) + [1] * len(parts[1])])
        with torch.inference_mode():
            return float(model.from_pretrained(folder).eval()(**inputs).logits[0, 0])

    return [score(action.text, other) for other in second_texts(action)]


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_score_is_the_logit_where_the_configuration_says_so(relevance: Path, profile: Profile) -> None:
    from transformers import BertForSequenceClassification

    asked = actions()
    results = load(relevance, profile).rate(asked)
    for action, result in zip(asked, results, strict=True):
        assert result.scores == pytest.approx(logits(relevance, BertForSequenceClassification, action), abs=1e-4)
        assert all(score == round(score, 6) for score in result.scores)
    assert any(score > 1 or score < 0 for result in results for score in result.scores)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_a_score_is_a_probability_by_default(duplicates: Path, profile: Profile) -> None:
    import torch
    from transformers import RobertaForSequenceClassification

    asked = actions(seed=2)
    for action, result in zip(asked, load(duplicates, profile).rate(asked), strict=True):
        outputs = torch.tensor(logits(duplicates, RobertaForSequenceClassification, action))
        assert result.scores == pytest.approx(torch.sigmoid(outputs).tolist(), abs=1e-4)


def test_a_server_of_the_same_model_gives_the_same_scores(relevance: Path, served: Served, tmp_path: Path) -> None:
    pytest.importorskip("httpx2", reason="httpx2 isn't installed")
    rater = load(relevance)

    def reranked(body: dict[str, Any]) -> object:
        (rated,) = rater.rate([Rate(by="relevance", text=body["query"], others=tuple(body["documents"]))])
        return {"results": [{"index": n, "relevance_score": score} for n, score in enumerate(rated.scores)]}

    served.replies = [computed(reranked)]
    table = f'[raters.mine]\nengine = "server"\nurl = "{served.url}"\nmodel = "ms-marco"\nbatch_size = 2\n'
    (tmp_path / "models.toml").write_text(table)
    asked = actions(seed=4)
    assert RATERS.find(tmp_path / "models.toml", "mine").open("fast").rate(asked) == rater.rate(asked)


def test_deterministic_scores_do_not_depend_on_what_else_is_rated(
    relevance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rater, passes = load(relevance), []
    predict = rater._model.predict  # type: ignore[attr-defined]

    def watched(batch: Sequence[Any], **options: Any) -> Any:
        passes.append(len(batch))
        return predict(batch, **options)

    monkeypatch.setattr(rater._model, "predict", watched)  # type: ignore[attr-defined]
    asked = actions(seed=3)
    whole = rater.rate(asked)
    distinct = {(each.text, other) for each in asked for other in second_texts(each)}
    assert passes == [1] * len(distinct)
    assert rater.rate(asked[::-1]) == whole[::-1]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: rater.rate([each])[0], asked)) == whole


def test_fast_reads_several_pairs_in_a_pass(relevance: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cotrail.engines.rating import cross_encoder as adapter

    monkeypatch.setattr(adapter, "CHARACTERS_AT_ONCE", {"cpu": 400, "cuda": 400})
    rater, passes = load(relevance, "fast"), []
    predict = rater._model.predict  # type: ignore[attr-defined]

    def watched(batch: Sequence[Any], **options: Any) -> Any:
        passes.append(len(batch))
        return predict(batch, **options)

    monkeypatch.setattr(rater._model, "predict", watched)  # type: ignore[attr-defined]
    asked = actions(seed=3)
    results = rater.rate(asked)
    assert 1 < len(passes) < sum(passes)
    for one, other in zip(results, load(relevance).rate(asked), strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-4)


def test_a_pair_that_is_too_long_is_cut(relevance: Path) -> None:
    long = [Rate(by="relevance", text="the river", others=("salt " * words,)) for words in (200, 300)]
    (one, other) = load(relevance).rate(long)
    assert one == other


def test_nothing_to_compare_with_has_no_scores(relevance: Path) -> None:
    assert load(relevance).rate([Rate(by="relevance", text="the river")]) == [Rated(scores=())]
    assert load(relevance).rate([]) == []


@pytest.mark.parametrize(
    ("model", "outputs", "problem"),
    [
        ("BertForSequenceClassification", 3, "by 3 outputs, and a rater has one"),
        ("BertModel", 1, "holds no classifier of pairs, but BertModel"),
    ],
)
def test_a_model_that_gives_no_score_is_refused(tmp_path: Path, model: str, outputs: int, problem: str) -> None:
    save(tmp_path, small(model, **SIZES | {"num_labels": outputs}))
    with pytest.raises(InputError, match=problem):
        load(tmp_path)


def test_a_folder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sentence-transformers can't load"):
        load(broken(tmp_path))


def test_weights_that_are_no_numbers_fail_the_step(relevance: Path) -> None:
    import torch

    rater = load(relevance)
    torch.nn.init.constant_(rater._model.model.classifier.bias, float("nan"))  # type: ignore[attr-defined]
    with pytest.raises(StepError, match="its weights are broken"):
        rater.rate([Rate(by="relevance", text="the river", others=("the sea",))])


def test_the_identity_is_known_before_the_model_is_loaded(relevance: Path, duplicates: Path) -> None:
    spec = find(relevance)
    assert spec.identity() == spec.open("fast").identity
    assert spec.identity() != find(duplicates).identity()


# Late interaction.


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `colbert`."""
    return colbert(tmp_path_factory.mktemp("late"))


def load_late(folder: Path, profile: Profile = "deterministic") -> Rater:
    (folder / "models.toml").write_text(f'[raters.mine]\nengine = "late-interaction"\npath = "{folder}"\n')
    return RATERS.find(folder / "models.toml", "mine").open(profile)


def max_sim(folder: Path, query: str, text: str) -> float:
    """What the model itself says, shown tokens that are put together by hand, one comparison after the other."""
    import torch

    from cotrail.engines.rating.late_interaction import ColBert

    model = ColBert.from_pretrained(folder).eval()

    def embedded(ids: list[int], attended: int) -> list[list[float]]:
        mask = torch.tensor([[1] * attended + [0] * (len(ids) - attended)])
        with torch.inference_mode():
            found: list[list[float]] = model(input_ids=torch.tensor([ids]), attention_mask=mask)[0].tolist()
        return found

    start, end = [NUMBERS["[CLS]"]], [NUMBERS["[SEP]"]]
    asked, shown = ([NUMBERS[word.lower()] for word in each.split()] for each in (query, text))
    first = [*start, NUMBERS["[UNK]"], *asked[:9], *end]
    second = [*start, NUMBERS["salt"], *shown[:17], *end]
    # A token that the tokenizer's mask stands for is not attended to, as mask tokens aren't.
    filled = first + [NUMBERS["north"]] * (12 - len(first))
    tokens, others = embedded(filled, len(first)), embedded(second, len(second))
    return sum(max(sum(a * b for a, b in zip(one, other, strict=True)) for other in others) for one in tokens)


@pytest.mark.parametrize("profile", ["fast", "deterministic"])
def test_late_interaction_is_the_sum_of_the_best_similarities(late: Path, profile: Profile) -> None:
    asked = [
        Rate(by="relevance", text="the river flows", others=("a sea of salt", "old boats carry stone " * 9)),
        Rate(by="relevance", text="boats " * 30, paragraphs=(Paragraph(id="1", title="River", text="into a sea"),)),
        Rate(by="relevance", text="stone"),
    ]
    for action, result in zip(asked, load_late(late, profile).rate(asked), strict=True):
        expected = [max_sim(late, action.text, other) for other in second_texts(action)]
        assert result.scores == pytest.approx(expected, abs=1e-4)


def test_late_interaction_does_not_depend_on_what_else_is_rated(late: Path) -> None:
    rater, asked = load_late(late), actions(seed=5)
    whole = rater.rate(asked)
    assert rater.rate(asked[::-1]) == whole[::-1]
    assert [rater.rate([each])[0] for each in asked] == whole


def test_a_folder_that_is_no_checkpoint_of_colbert_is_refused(relevance: Path, late: Path, tmp_path: Path) -> None:
    save(tmp_path, small("BertModel", **SIZES))
    with pytest.raises(InputError, match="is no checkpoint of ColBERT"):
        load_late(tmp_path)
    (tmp_path / METADATA).write_text('{"dim": 8}')
    with pytest.raises(InputError, match="its weights lack linear"):
        load_late(tmp_path)


def test_how_a_checkpoint_was_trained_is_part_of_its_identity(tmp_path: Path) -> None:
    identities = set()
    for trained in ({}, {"query_maxlen": 13}, {"doc_token_id": "[UNK]"}, {"checkpoint": "elsewhere"}):
        identities.add(load_late(colbert(tmp_path / "one", **trained)).identity)
    assert len(identities) == 3
