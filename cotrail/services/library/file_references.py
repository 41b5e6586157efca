"""References to uploaded files, which stand for paths in requests over HTTP.

`sha256:HEX/NAME` is the file with that content that was uploaded under that name; `sha256:HEX` any with that content.
`folder:sha256:HEX/NAME` is a folder, whose list of files (`cotrail.services.library.uploaded_files`) has that content.
"""

import re
from pathlib import PurePosixPath

from msgspec import Struct

from cotrail.common.printable_text import cut
from cotrail.errors import InputError

FOLDER = "folder:"

MOST_NAME_BYTES = 255

_REFERENCE = re.compile(r"(?P<folder>folder:)?(?P<digest>sha256:[0-9a-f]{64})(/(?P<name>.+))?", re.DOTALL)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class FileReference(Struct, frozen=True, kw_only=True):
    """A file, or a folder by the list of its files; name: None for any."""

    digest: str
    name: str | None = None
    folder: bool = False

    def __str__(self) -> str:
        return f"{FOLDER if self.folder else ''}{self.digest}{f'/{self.name}' if self.name else ''}"


class Upload(Struct, frozen=True, kw_only=True):
    """A file that comes in pieces; offset: how many of its bytes are there; done: whether it is complete and kept."""

    upload: str
    digest: str
    name: str
    bytes: int
    offset: int = 0
    done: bool = False


def read_reference(text: str) -> FileReference:
    """The reference that a request has in place of a path; raises InputError where it is something else."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise InputError(
            f"{cut(text, 200)!r} isn't a file of the service: upload the file (PUT /v1/files/DIGEST?name=NAME), and "
            "name it by its digest, as sha256:HEX or sha256:HEX/NAME"
        )
    name = found["name"]
    return FileReference(
        digest=found["digest"], name=None if name is None else check_file_name(name), folder=bool(found["folder"])
    )


def check_digest(digest: str) -> str:
    """The digest; raises InputError where it isn't one."""
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"{cut(digest, 100)!r} isn't a digest: write sha256: and 64 digits of 0-9 and a-f")
    return digest


def check_file_name(name: str) -> str:
    """The name of a file; raises InputError where it has a folder in it, or isn't a name."""
    fits = 0 < len(name.encode("utf-8", "replace")) <= MOST_NAME_BYTES
    if not fits or not name.isprintable() or "/" in name or "\\" in name or not name.strip("."):
        raise InputError(
            f"{cut(name, 100)!r} isn't a name for a file: use up to {MOST_NAME_BYTES} bytes without / and \\, and not "
            "dots alone"
        )
    return name


def check_relative(name: str) -> PurePosixPath:
    """The path of a file in a folder, such as `notes/a.md`; raises InputError where it may lead out of the folder."""
    path = PurePosixPath(name)
    for part in path.parts or ("",):
        check_file_name(part)
    return path
