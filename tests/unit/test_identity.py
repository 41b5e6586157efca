"""What a model is called in a run: two that differ in anything are never taken for one another."""

import pytest

from cotrail.common.structs import shortened
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import fingerprint
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import Demonstrations
from cotrail.engines.entailment.entailers import ENTAILERS
from cotrail.engines.language_models.catalogue import OpenAI
from cotrail.engines.model_folders import model_identity
from cotrail.errors import ModelChangedError
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.tasks.engines import check_model

ONE, OTHER = (
    OpenAI(url="http://host:8000/v1", model="llama", context=4096, revision=revision).identity("served")
    for revision in ("6009960", "9788617")
)
"""Of two revisions whose SHA-256 begin with the same 48 bits; they were found by trying twenty million."""


def test_the_two_look_alike_where_they_are_shortened() -> None:
    assert shortened(ONE) == shortened(OTHER) == "served@ac649506e4e7"


def test_two_revisions_whose_digests_begin_alike_are_two_models() -> None:
    check_model(ONE, ONE)
    with pytest.raises(ModelChangedError, match=f"(?s){ONE}.*{OTHER}"):
        check_model(OTHER, ONE)


def test_nor_do_they_share_their_steps() -> None:
    prompt = few_shot_prompt(demonstrations=Demonstrations(), paragraphs=(), question="Who?")
    asked = Reason(prompt=prompt, max_tokens=8, until="line")
    bindings = [Binding(model=each, profile="fast", seed=0, temperature=0.0) for each in (ONE, OTHER)]
    assert len({fingerprint(asked, binding) for binding in bindings}) == 2


def test_an_entailer_that_asks_a_model_is_named_by_all_of_the_model() -> None:
    asked = ENTAILERS.built_in["prompted"]
    assert asked.identity("asked", ONE) != asked.identity("asked", OTHER)


def test_only_whole_digests_are_shortened() -> None:
    digest = "0123456789abcdef" * 4
    assert shortened(f"{digest}, a@{digest}+b@{digest}") == "0123456789ab, a@0123456789ab+b@0123456789ab"
    assert shortened(f"{digest[:40]}+changes") == "0123456789ab+changes"
    for other in (digest[:63], digest + "0", digest[:12], digest.upper(), "a short word"):
        assert shortened(other) == other


def test_an_identity_has_all_of_the_digest() -> None:
    digest = "f" * 64
    assert model_identity("m", digest) == f"m@{digest}"
