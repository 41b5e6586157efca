import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from cotrail.common.optional_packages import install_extra
from cotrail.core.generation import Capability
from cotrail.engines.engine_kinds import CATALOGUES, find_engine
from cotrail.engines.language_models.catalogue import (
    LlamaCpp,
    OpenAI,
    catalogue,
    check_capabilities,
    find_model,
    identity,
    open_model,
    served_table,
)
from cotrail.errors import InputError, UnknownNameError
from tests.cases import each_case

OPENAI = 'engine = "openai"\nurl = "https://host:8000/v1"\nmodel = "org/m"\ncontext = 4096\n'


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


def test_a_missing_list_of_models_leaves_the_built_in_one(models: Path) -> None:
    assert list(catalogue(models)) == ["smollm2-135m"]


def test_an_added_model_is_found_beside_its_list_and_opens_under_its_name(models: Path) -> None:
    script = {"name": "s", "questions": {}, "default": {"answer": "Ann"}}
    (models.parent / "chain.json").write_text(json.dumps(script))
    models.write_text('[models.mine]\nengine = "scripted"\npath = "chain.json"\n')
    spec = find_model(models, "mine")
    assert spec.name == "mine"
    assert open_model(spec, "deterministic", 1).identity == identity(spec)
    assert identity(spec).startswith("mine@")


def test_each_engine_has_fields_of_its_own(models: Path) -> None:
    models.write_text(f'[models.a]\nengine = "llamacpp"\npath = "a.gguf"\n[models.b]\n{OPENAI}api = "chat"\n')
    found = catalogue(models)
    assert found["a"].engine == LlamaCpp(path=models.parent / "a.gguf", context=8192)
    assert found["b"].engine == OpenAI(url="https://host:8000/v1", model="org/m", context=4096, api="chat")


def test_an_unknown_model_is_answered_with_those_there_are(models: Path) -> None:
    with pytest.raises(UnknownNameError, match="smollm2-135m"):
        find_model(models, "gpt")


@pytest.mark.parametrize(
    ("name", "library", "extra"), [("openai", "httpx2", "openai"), ("transformers", "torch", "gpu")]
)
def test_an_engine_is_loaded_when_its_model_is_and_says_what_it_lacks(
    models: Path, name: str, library: str, extra: str
) -> None:
    models.write_text(f'[models.openai]\n{OPENAI}[models.transformers]\nengine = "transformers"\npath = "x"\n')
    code = (
        "import sys; from pathlib import Path\n"
        "from cotrail.engines.language_models.catalogue import find_model, open_model\n"
        f"assert {library!r} not in sys.modules; sys.modules[{library!r}] = None\n"
        f"open_model(find_model(Path({str(models)!r}), {name!r}), 'fast', 1)"
    )
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "NotInstalledError: " in tried.stderr
    assert f"isn't installed: `{install_extra(extra)}`" in tried.stderr


@each_case(
    ("content", "problem"),
    [
        ("[models", "isn.t TOML"),
        ("\udcff", "not UTF-8 text"),
        ("models = 3", "no model 'm'.*malformed: `models` must be"),
        ("[modles.m]", "malformed: there is no key `modles` .did you mean models\\?.; there are: models, embedders"),
        ("[models]\nm = 3", "the model m is malformed: this must be"),
        ("[models.m]\n", "model m .*`engine` is missing; there are: llamacpp, transformers, openai, anthropic, gemini"),
        ('[models.m]\nengine = "magic"\npath = "x"', "magic.*there are: llamacpp"),
        ("[models.m]\nengine = 3", "`engine` must be llamacpp or "),
        ('[models.m]\nengine = "llamacpp"', "`path` is missing; the keys are: path, context"),
        ('[models.m]\nengine = "llamacpp"\npath = 3', "`path` must be text in quotation marks"),
        (
            '[models.m]\nengine = "llamacpp"\npath = "x"\ncontext = 0',
            "model m .*`context` must be a whole number, 1 or more, e.g. `8192`",
        ),
        (
            '[models.m]\nengine = "transformers"\npath = "x"\ncontext = "8"',
            "`context` must be a whole number, .* e.g. `8`",
        ),
        ('[models.m]\nengine = "scripted"\npath = "x"\ncontext = 9', "no key `context`; there are: path"),
        ('[models.m]\nengine = "oracle"\npath = "x"\ncontext = 9', "no key `context`; there are: path"),
        (f"[models.m]\n{OPENAI}key = 'sk-secret'", r"no key `key` \(did you mean key_variable\?\)"),
        (
            f"[models.m]\n{OPENAI}key_variable = 'sk-secret'",
            "`key_variable` must be the name of an environment variable",
        ),
        (f"[models.m]\n{OPENAI}in_flight = 0", "`in_flight` must be a whole number, 1 or more"),
        (f"[models.m]\n{OPENAI}timeout_seconds = 0", "`timeout_seconds` must be a number, above 0, e.g. `300.0`"),
        (
            f"[models.m]\n{OPENAI}api = 'telepathy'",
            "`api` can't be 'telepathy'; there are: anthropic, chat, completions, gemini, responses",
        ),
        (f"[models.m]\n{OPENAI}continues = 'vllm'", 'continues is for api = "chat"'),
        (f"[models.m]\n{OPENAI}api = 'chat'\nchat_template = 'x'", 'chat_template is for api = "completions"'),
        (f"[models.m]\n{OPENAI}bos = '<s>'", "bos and eos are for a chat_template"),
        (f"[models.m]\n{OPENAI}without = ['turns']", "without.*turns.*there are: "),
    ],
)
def test_a_broken_list_of_models_says_what_is_wrong(models: Path, content: str, problem: str) -> None:
    models.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=problem) as caught:
        find_model(models, "m")
    assert "sk-secret" not in str(caught.value)


@each_case(
    ("url", "problem"),
    [
        ("ftp://host/v1", "isn't that of a server"),
        ("file:///etc/v1", "isn't that of a server"),
        ("host:8000/v1", "isn't that of a server"),
        ("http:///v1", "isn't that of a server"),
        ("http://host:99999/v1", "its port is out of range"),
        ("http://host/v1/", "ends in a slash"),
        ("http://me:sk-secret@host/v1", "holds more than an address"),
        ("http://host/v1?key=sk-secret", "holds more than an address"),
    ],
)
def test_an_address_is_that_of_a_server_and_nothing_else(models: Path, url: str, problem: str) -> None:
    models.write_text("[models.m]\n" + OPENAI.replace("https://host:8000/v1", url))
    with pytest.raises(InputError, match=problem) as caught:
        find_model(models, "m")
    assert "sk-secret" not in str(caught.value)


def test_the_fault_of_a_table_is_its_own_models_alone(models: Path) -> None:
    models.write_text(
        f"[models.good]\n{OPENAI}"
        '[models.unfinished]\nengine = "openai"\nurl = "http://host:8000/v1"\n'
        '[models.nowhere]\nengine = "openai"\nurl = "host"\nmodel = "m"\ncontext = 9\n'
        '[models.smollm2-135m]\nengine = "llamacpp"\npath = "x"\n'
        '[models.listed]\nengine = ["openai"]\n'
        '[embedders.far]\nengine = "server"\nurl = "host"\nmodel = "m"\n'
        '[raters.near]\nengine = "scripted"\npath = "scores.json"\n'
        "[raters.bare]\n"
        "[modles.lost]\n"
    )
    assert find_model(models, "good").engine.served
    for name, problem in (
        ("unfinished", "`model` is missing.*`cotrail models unfinished --ask`"),
        ("nowhere", "isn't that of a server"),
        ("smollm2-135m", "the name of a built-in model; take another"),
        ("listed", "`engine` must be"),
        ("lost", "no key `modles`"),
    ):
        with pytest.raises(InputError, match=problem):
            find_model(models, name)
    assert find_engine(models, "rater", "near").name == "near"
    assert find_engine(models, "embedder").name in CATALOGUES["embedder"].built_in
    for kind, name in (("embedder", "far"), ("rater", "bare")):
        with pytest.raises(InputError, match=f"the {kind} {name} is malformed"):
            find_engine(models, kind, name)


def test_a_table_for_asking_needs_no_more_than_its_engine_and_its_url(models: Path) -> None:
    models.write_text('[models.m]\nengine = "openai"\nurl = "http://host:8000/v1"\n[models.n]\nengine = ["openai"]\n')
    assert served_table(models, "m") == {"engine": "openai", "url": "http://host:8000/v1"}
    assert served_table(models, "n") is None


def test_a_model_file_that_is_missing_is_named(models: Path) -> None:
    models.write_text('[models.m]\nengine = "llamacpp"\npath = "gone.gguf"')
    with pytest.raises(InputError, match=r"gone\.gguf"):
        identity(find_model(models, "m"))


TEMPLATED = f"{OPENAI}chat_template = 'chat.jinja'\n"


def test_settings_of_a_server_belong_to_the_identity_only_where_they_are_set(models: Path) -> None:
    template = models.parent / "chat.jinja"
    template.write_text("{{ messages }}")

    def known(table: str) -> str:
        models.write_text(f"[models.m]\n{table}")
        return identity(find_model(models, "m"))

    with_context = OPENAI.replace("4096", "100").replace("org/m", "m")
    assert known(with_context) == "m@6754b2947805b7f4ef0eda1e07dd2517841f19ac394580d5b150dc9c46678745"
    assert known(with_context + "without = ['scores']\n") == known(with_context)
    chat = f"{OPENAI}api = 'chat'\n"
    others = [OPENAI, TEMPLATED, f"{TEMPLATED}eos = '</s>'\n", chat, f"{chat}continues = 'vllm'\n"]
    identities = [known(table) for table in others]
    template.write_text("{{ messages[0] }}")
    assert len({*identities, known(TEMPLATED)}) == len(others) + 1
    template.unlink()
    with pytest.raises(InputError, match=r"chat template .*chat\.jinja can't be read"):
        known(TEMPLATED)


@each_case(
    ("settings", "lacks"),
    [
        ("", dict.fromkeys(("turns", "continue", "tools"), 'set chat_template .*, or api = "chat"')),
        ("chat_template = 'chat.jinja'", {"tools": "isn't shown tools by its chat template"}),
        ("chat_template = 'tools.jinja'", {}),
        ("api = 'chat'", {"continue": "set continues"}),
        ("api = 'chat'\ncontinues = 'prefix'", {"sampling": "OpenAI's protocol alone"}),
        ("api = 'chat'\nbatch = 'openai'", {"continue": "set continues", "sampling": "OpenAI's protocol alone"}),
        (
            "api = 'chat'\ncontinues = 'vllm'\nwithout = ['scores', 'sampling', 'tools']",
            {"scores": "no log probabilities", "sampling": "no top_k", "tools": "no tools, as its table says"},
        ),
    ],
)
def test_a_server_says_what_it_lacks_and_what_to_set(models: Path, settings: str, lacks: dict[str, str]) -> None:
    models.write_text(f"[models.m]\n{OPENAI}{settings}")
    (models.parent / "chat.jinja").write_text("{{ messages }}")
    (models.parent / "tools.jinja").write_text("{{ tools }}{{ messages }}")
    spec = find_model(models, "m")
    for capability in get_args(Capability):
        if capability not in lacks:
            check_capabilities(spec, frozenset({capability}))
            continue
        with pytest.raises(InputError, match=f"^the model m .*{lacks[capability]}"):
            check_capabilities(spec, frozenset({capability}))
