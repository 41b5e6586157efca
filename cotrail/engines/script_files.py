"""Scripts: files that say what a scripted model answers, for tests and for demonstrations without a model."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from cotrail.common.json_files import problem_of
from cotrail.common.structs import canonical
from cotrail.common.text_files import MAX_SMALL_FILE_BYTES, opened, read_whole, too_deep
from cotrail.engines.model_folders import model_identity
from cotrail.errors import InputError

Form = TypeVar("Form", bound=Struct)


def read_script(source: Form | Path | Mapping[str, object], form: type[Form]) -> Form:
    """A script, given as itself, as a JSON file or as a mapping of the same content.

    form: the class of such scripts. Raises InputError where a file is malformed.
    """
    match source:
        case Path():
            return _read(source, form)
        case Mapping():
            return msgspec.convert(source, form)
    return source


def script_digest(script: Struct) -> str:
    """The SHA-256 of a script's content, however its file is laid out."""
    return hashlib.sha256(canonical(script)).hexdigest()


class ScriptedEngine(Generic[Form]):
    """An engine that answers by a script.

    form: the class of its scripts. source: a script, its file, or a mapping of the same content; name: the identity's
    name. Raises InputError where a file is malformed.
    """

    form: ClassVar[type[Struct]]

    def __init__(self, source: Form | Path | Mapping[str, object], name: str = "scripted") -> None:
        self._script: Form = read_script(source, cast(type[Form], self.form))
        self.identity = model_identity(name, script_digest(self._script))


def _read(path: Path, form: type[Form]) -> Form:
    with opened(path, InputError, "the script") as file:
        content = read_whole(file, f"the script {path}", InputError, MAX_SMALL_FILE_BYTES)
    try:
        return msgspec.json.decode(content, type=form)
    except RecursionError as error:
        raise InputError(too_deep(f"the script {path}")) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"the script {path} is malformed: {problem_of(error, content, form)}") from error
