from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cotrail.core.generation import Sampling

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.usefixtures("transformers")


def logits() -> "st.SearchStrategy[torch.Tensor]":
    import torch

    return st.lists(st.floats(-20, 20, width=16), min_size=2, max_size=40, unique=True).map(torch.tensor)


LOGITS = st.deferred(logits)


@given(LOGITS, st.integers(0, 45), st.floats(0.01, 1.0))
def test_what_stays_is_what_stays_in_transformers(logits: "torch.Tensor", top_k: int, top_p: float) -> None:
    import torch
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    from cotrail.engines.language_models.transformers.request import likeliest

    ids, warped = torch.tensor([[0]]), logits[None]
    if top_k:
        warped = TopKLogitsWarper(top_k)(ids, warped)
    shares = torch.softmax(warped[0], dim=-1).sort(descending=True).values
    if top_p < 1:
        # There, rounding decides whether one token more stays.
        assume(float((shares.cumsum(-1) - top_p).abs().min()) > 1e-5)
        warped = TopPLogitsWarper(top_p)(ids, warped)
    expected = torch.softmax(warped[0], dim=-1)
    likely = likeliest(torch.softmax(logits, dim=-1), top_k, top_p)
    assert torch.allclose(likely / likely.sum(), expected)
    assert torch.equal(likely > 0, expected > 0)


@given(LOGITS, st.floats(0.5, 3.0), st.lists(st.integers(0, 1), max_size=5))
def test_a_penalty_is_that_of_transformers(logits: "torch.Tensor", penalty: float, seen: list[int]) -> None:
    import torch
    from transformers import RepetitionPenaltyLogitsProcessor

    from cotrail.engines.language_models.transformers.request import penalized

    before = logits.clone()
    ids = torch.tensor([seen], dtype=torch.long)
    expected = RepetitionPenaltyLogitsProcessor(penalty)(ids, logits[None].clone())[0]
    assert torch.allclose(penalized(logits, seen, penalty), expected)
    assert torch.equal(logits, before)


def test_of_equally_likely_tokens_the_first_ones_stay() -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import likeliest

    assert likeliest(torch.full((4,), 0.25), 2, 1.0).tolist() == [0.25, 0.25, 0, 0]
    assert likeliest(torch.full((4,), 0.25), 0, 0.5).tolist() == [0.25, 0.25, 0, 0]
    assert likeliest(torch.full((4,), 0.25), 0, 0.0).tolist() == [0.25, 0, 0, 0]


def test_a_penalty_without_chance_takes_the_likeliest_that_is_left() -> None:
    import torch

    from cotrail.engines.language_models.transformers.request import Sampler, next_tokens

    logits = torch.tensor([[2.0, 1.5, -1.0], [2.0, 1.5, -1.0]])
    penalizing = Sampler(Sampling(repetition_penalty=2.0), lambda: [0])
    greedy = Sampler(Sampling(), lambda: [0])
    assert next_tokens(logits, [greedy, penalizing]) == [0, 1]
    assert (greedy.greedy, penalizing.greedy) == (True, False)


@given(LOGITS, st.integers(0, 2**31))
def test_parameters_that_restrict_nothing_change_no_draw(logits: "torch.Tensor", seed: int) -> None:
    from cotrail.engines.language_models.transformers.request import Sampler

    def drawn(top_k: int) -> list[int]:
        draw = Sampler(Sampling(temperature=1.0, seed=seed, top_k=top_k), list)
        return [draw(logits) for _ in range(5)]

    assert drawn(len(logits)) == drawn(0)
