"""SmolLM2's GGUF file in the transformers engine, which takes long to read it: it is read once for all of these."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.core.generation import Until
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt, Written, user
from cotrail.core.questions import Paragraph
from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.errors import UnavailableError
from cotrail.systems.parts.prompting import few_shot_prompt
from tests.conftest import Eventually
from tests.integration.test_transformers import demonstrations

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.model import TransformersModel

pytestmark = pytest.mark.usefixtures("transformers")


@pytest.fixture(scope="module")
def gguf() -> Iterator["TransformersModel"]:
    """A model that writes ahead, as on a GPU."""
    pytest.importorskip("gguf", reason="gguf isn't installed")
    from cotrail.engines.language_models.transformers import causal
    from cotrail.engines.language_models.transformers.model import TransformersModel

    try:
        path = smollm2_path()
    except UnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(causal.WRITES_AHEAD, "cpu", True)
        model = TransformersModel(path, "smollm2-135m", "fast", 1, 1024)
        yield model
        model.interrupt()


def test_smollm2_writes_a_chain_from_its_gguf(gguf: "TransformersModel", eventually: Eventually) -> None:
    text = "Ostmark is a country. Its capital is Brenn."
    paragraph = Paragraph(id="Ostmark", title="Ostmark", text=text)
    prompt = few_shot_prompt(
        demonstrations=demonstrations(), paragraphs=(paragraph,), question="What is the capital of Ostmark?"
    )
    result = gguf.generate(GenerationRequest(prompt, "sentence", 40))
    assert result.text.endswith((".", "?", "!"))
    assert result.raw.lstrip().startswith(result.text)
    assert gguf.count_tokens(result.raw) - gguf.count_tokens(result.text) <= 4
    eventually(lambda: not gguf._scheduler._runner.busy, "the rest of the chain is written")
    talk = Prompt(turns=(user("What is the capital of France? Answer with one word.<|im_end|>"),))
    said = gguf.generate(GenerationRequest(talk, "stop", 20))
    assert "Paris" in said.text
    assert said.ended == "end"
    following = gguf.generate(GenerationRequest(prompt.append(Written(f" {result.text}")), "sentence", 40))
    assert following.text != result.text
    assert following.accepted_tokens >= following.generated_tokens - 2
    nothing = Demonstration(id="0", paragraphs=(), question="a", answer="\n\nQ: a\nA:" * 30)
    breaking = few_shot_prompt(demonstrations=Demonstrations(items=(nothing,)), question="a")
    untils: tuple[Until, ...] = ("sentence", "line")
    for until in untils:
        ended = gguf.generate(GenerationRequest(breaking, until, 8))
        assert (ended.text, ended.generated_tokens) == ("", 1)


@pytest.mark.parametrize("claim", ["Paris is in France.", "The Vell is a lake."])
def test_both_engines_tell_alike_of_the_same_file(
    gguf: "TransformersModel", shared_smollm2: Callable[..., Any], claim: str
) -> None:
    facts = "Paris is the capital of France.\nThe Vell flows into the Amber Sea."
    asked = f"{facts}\nQuestion: {claim} True, False, or Neither?\nAnswer:"
    for choices in ([" True", " Neither", " False"], [" zebra", "\t", "Ω", " True"]):
        expected = gguf.probabilities(asked, choices)
        assert shared_smollm2().probabilities(asked, choices) == pytest.approx(expected, abs=0.03)
