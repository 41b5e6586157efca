import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.embed import Embed
from cotrail.core.ports.encoders import Embedder
from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import embedded
from cotrail.engines.embedding.embedders import EMBEDDERS, ScriptedEmbedder, SentenceTransformers
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue
from cotrail.errors import InputError, NotInstalledError, UnknownNameError
from tests.cases import each_case

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
FACT = Paragraph(id="f", title="", text="The Vell is a river.")


def vectors(*numbers: list[float]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    return {str(n): np.array(each, np.float32) / np.float32(np.linalg.norm(each)) for n, each in enumerate(numbers)}


# Vectors


def test_a_row_a_sentence_and_a_column_a_paragraph() -> None:
    made = {"a": np.array([1, 0], np.float32), VELL.statement: np.array([0, 1], np.float32)}
    made |= {"b": np.array([0.6, 0.8], np.float32), FACT.statement: np.array([-1, 0], np.float32)}
    assert VELL.statement == "Vell\nThe Vell flows into the Amber Sea."
    result = embedded(Embed(sentences=("a", "b"), paragraphs=(VELL, FACT)), made)
    assert result.similarities == ((0.0, -1.0), (0.8, -0.6))


def test_without_paragraphs_sentences_are_compared_with_one_another() -> None:
    made = vectors([1, 0], [1, 1], [-1, 1])
    result = embedded(Embed(sentences=("0", "1", "2")), made)
    assert result.similarities == ((1.0, 0.707107, -0.707107), (0.707107, 1.0, 0.0), (-0.707107, 0.0, 1.0))
    assert "-0.0" not in str(result)


def test_nothing_asked_is_nothing_compared() -> None:
    assert embedded(Embed(sentences=()), {}).similarities == ()
    assert embedded(Embed(sentences=(), paragraphs=(VELL,)), {}).similarities == ()


NUMBERS = st.lists(st.floats(-1, 1, width=32), min_size=24, max_size=24).filter(lambda each: np.linalg.norm(each) > 0.1)


@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_a_similarity_is_the_cosine_both_ways_and_whatever_else_is_compared(numbers: list[list[float]]) -> None:
    made = vectors(*numbers)
    whole = embedded(Embed(sentences=tuple(made)), made).similarities
    for one, row in enumerate(whole):
        assert row[one] == 1.0
        for other, similarity in enumerate(row):
            pair = embedded(Embed(sentences=(str(one), str(other))), made).similarities
            exact = np.dot(numbers[one], numbers[other]) / np.linalg.norm(numbers[one]) / np.linalg.norm(numbers[other])
            assert pair[0][1] == pair[1][0] == similarity
            assert similarity == pytest.approx(exact, abs=2e-6)


# Scripts

SCRIPT = {
    "similarities": {
        "The Vell is long.": {"Vell": 0.7, "The Vell is a river.": 0.6, "It is a river.": 0.4},
        "It is a river.": {"Vell": -0.25},
    },
    "default": 0.125,
}


def test_a_script_knows_paragraphs_by_title_or_text() -> None:
    asked = Embed(sentences=("The Vell is long.", "It is a river.", "So?"), paragraphs=(VELL, FACT))
    (result,) = ScriptedEmbedder(SCRIPT).compare([asked])
    assert result.similarities == ((0.7, 0.6), (-0.25, 0.125), (0.125, 0.125))


def test_a_script_knows_two_sentences_either_way_round() -> None:
    sentences = ("The Vell is long.", "It is a river.", "So?")
    results = ScriptedEmbedder(SCRIPT).compare([Embed(sentences=sentences), Embed(sentences=("So?",))])
    assert results[0].similarities == ((1.0, 0.4, 0.125), (0.4, 1.0, 0.125), (0.125, 0.125, 1.0))
    assert results[1].similarities == ((1.0,),)


def test_a_script_s_identity_is_its_content(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT, indent=3, sort_keys=True))
    (tmp_path / "models.toml").write_text('[embedders.mine]\nengine = "scripted"\npath = "script.json"\n')
    spec = EMBEDDERS.find(tmp_path / "models.toml", "mine")
    assert spec.identity() == spec.open("fast").identity == ScriptedEmbedder(SCRIPT, "mine").identity
    assert spec.identity() != ScriptedEmbedder(SCRIPT | {"default": 0.5}, "mine").identity
    assert spec.instead == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "malformed"),
        ('{"similarities": {"a": {"b": 1.5}}}', "malformed.*from -1 to 1"),
        ('{"defaults": 0}', "no key `defaults`"),
    ],
)
def test_a_broken_script_says_what_is_wrong(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "script.json").write_text(content)
    (tmp_path / "models.toml").write_text('[embedders.mine]\nengine = "scripted"\npath = "script.json"\n')
    spec = EMBEDDERS.find(tmp_path / "models.toml", "mine")
    with pytest.raises(InputError, match=problem):
        spec.identity()


# The catalogue

SERVER = "[embedders.m]\nengine = 'server'\nmodel = 'e5'\n"


@each_case(
    ("content", "problem"),
    [
        ("[embedders.m]", "the embedder m .*`engine` is missing; there are: sentence-transformers, server, scripted"),
        ('[embedders.m]\nengine = "magic"', "there are: sentence-transformers, server, scripted"),
        ('[embedders.m]\nengine = "scripted"', "`path` is missing; the keys are: path"),
        ('[embedders.m]\nengine = "sentence-transformers"\npath = 3', "`path` must be text in quotation marks"),
        ('[embedders.m]\nengine = "scripted"\npath = "x"\nprofile = "fast"', "no key `profile`; there are: path"),
        ('[embedders.all-minilm-l6-v2]\nengine = "scripted"\npath = "x"', "built-in embedder"),
        ("[embedder.m]", "malformed.*embedder"),
        (f"{SERVER}url = 'http://host:8000'", "the url has no path, and OpenAI's API begins behind one"),
        (f"{SERVER}url = 'http://host/v1/embeddings'", "the url is where the API begins: leave out its end"),
        (f"{SERVER}url = 'http://host/v1/'", "leave out its end, /embeddings or /"),
        (f"{SERVER}url = 'host:8000'", "the url isn't that of a server"),
        (f"{SERVER}url = 'http://user:sentinel@host/v1'", "a key belongs into the variable that key_variable names"),
        (f"{SERVER}url = 'http://host/v1'\nkey_variable = 'sk-abc'", "must be the name of an environment variable"),
        (f"{SERVER}url = 'http://host/v1'\nkey = 'sk-abc'", r"no key `key` \(did you mean key_variable\?\)"),
        (f"{SERVER}url = 'http://host/v1'\nbatch_size = 0", "`batch_size` must be"),
        (f"{SERVER}url = 'http://host/v1'\ndimensions = -1", "`dimensions` must be"),
        (f"{SERVER}url = 'http://host'\napi = 'cohere'", "`api` can't be 'cohere'; there are: openai, tei"),
        (f"{SERVER}url = 'http://host'\napi = 'tei'\nencoding = 'base64'", 'encoding = "base64" is for api = "openai"'),
    ],
)
def test_a_broken_list_says_what_is_wrong(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "models.toml").write_text(content)
    with pytest.raises(InputError, match=problem):
        EMBEDDERS.find(tmp_path / "models.toml", "all-minilm-l6-v2" if "built-in" in problem else "m")


def test_an_unknown_embedder_is_answered_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('[embedders.mine]\nengine = "scripted"\npath = "x"\n')
    with pytest.raises(UnknownNameError, match="all-minilm-l6-v2, all-mpnet-base-v2, mine"):
        EMBEDDERS.find(tmp_path / "models.toml", "theirs")


def test_a_folder_without_weights_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "vocab.txt").write_text("[UNK]")
    (tmp_path / "models.toml").write_text('[embedders.mine]\nengine = "sentence-transformers"\npath = "."\n')
    with pytest.raises(InputError, match="neither model"):
        EMBEDDERS.find(tmp_path / "models.toml", "mine").identity()


@pytest.fixture
def at_hand() -> dict[str, Path]:
    """The folders of the built-in embedders that are at hand."""
    return {}


@pytest.fixture
def lacking(at_hand: dict[str, Path]) -> EngineCatalogue[Embedder]:
    """The built-in embedders with made-up folders in their places; those that aren't at hand have none."""

    def folder(name: str) -> Path:
        if name not in at_hand:
            raise NotInstalledError(f"{name} is nowhere: get it")
        return at_hand[name]

    entries = {name: BuiltIn[Embedder](partial(folder, name), SentenceTransformers) for name in EMBEDDERS.built_in}
    return replace(EMBEDDERS, built_in=entries)


def test_the_default_is_the_paper_s_model_where_it_is_at_hand(
    at_hand: dict[str, Path], lacking: EngineCatalogue[Embedder], tmp_path: Path
) -> None:
    at_hand |= {"all-mpnet-base-v2": tmp_path, "all-minilm-l6-v2": tmp_path}
    spec = lacking.find(tmp_path / "models.toml", None)
    assert (spec.name, spec.instead) == ("all-mpnet-base-v2", "")


def test_the_default_says_what_it_stands_in_for_and_why(
    at_hand: dict[str, Path], lacking: EngineCatalogue[Embedder], tmp_path: Path
) -> None:
    at_hand |= {"all-minilm-l6-v2": tmp_path}
    spec = lacking.find(tmp_path / "models.toml", None)
    assert spec.name == "all-minilm-l6-v2"
    assert spec.instead == "all-minilm-l6-v2 stands in for all-mpnet-base-v2: all-mpnet-base-v2 is nowhere: get it"


def test_what_is_asked_for_by_name_has_to_be_at_hand(lacking: EngineCatalogue[Embedder], tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="all-minilm-l6-v2 is nowhere: get it"):
        lacking.find(tmp_path / "models.toml", "all-minilm-l6-v2")
    with pytest.raises(NotInstalledError, match="none of all-mpnet-base-v2, all-minilm-l6-v2 is installed"):
        lacking.find(tmp_path / "models.toml", None)
