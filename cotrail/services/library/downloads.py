"""Published files of datasets and corpora are fetched from their publishers, or from a mirror of one's own.

An interrupted download continues where it was (RFC 9110, section 14) if the server says that the file is unchanged.
A complete file has its digest next to it, in `NAME.sha256`, as `sha256sum -c` reads it.
"""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urlsplit

import httpx2
import msgspec
from msgspec import Struct

from cotrail.common.humanize import size
from cotrail.common.nearest import refused_choice
from cotrail.common.processes import exclusive_folder
from cotrail.common.server_addresses import http_options
from cotrail.common.text_files import write_whole
from cotrail.common.toml_files import read_toml
from cotrail.data.corpora.building import file_digest
from cotrail.errors import CotrailError, InputError, UnavailableError

TIMEOUT_SECONDS = 60.0
"""How long a server may be silent."""

_BROKEN = (shutil.ReadError, tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, ValueError)
"""What archives raise that are none, or broken."""

_TABLE = Path(__file__).parents[2] / "data" / "published_files.toml"


class PublishedFile(Struct, frozen=True, kw_only=True):
    """A file at its publisher; name: what it is called here, by default the end of its address.

    unpack: an archive, whose files are read; sha256: as the publisher states it, or empty.
    """

    url: str
    name: str = ""
    unpack: bool = False
    sha256: str = ""

    def __post_init__(self) -> None:
        """Name the file."""
        msgspec.structs.force_setattr(self, "name", self.name or Path(urlsplit(self.url).path).name)


class Published(Struct, frozen=True, kw_only=True):
    """The files of a dataset or a corpus."""

    what: str
    source: str
    licence: str
    files: tuple[PublishedFile, ...]


class Downloading(Struct, frozen=True):
    """How far a file is; done: bytes that are here; whole: all of its bytes, None where the server doesn't say."""

    name: str
    done: int
    whole: int | None


OnBytes = Callable[[Downloading], None]


class Fetched(Struct, frozen=True, kw_only=True):
    """A file that is here; resumed: bytes of an earlier attempt; is_new: False where nothing had to be fetched."""

    path: str
    bytes: int
    sha256: str
    resumed: int = 0
    is_new: bool = True


class _InterruptedError(CotrailError):
    """The connection was lost after so many bytes of the file."""

    def __init__(self, got: int) -> None:
        super().__init__(f"after {got} bytes")
        self.got = got


@cache
def published() -> Mapping[str, Published]:
    """All that can be fetched, by its name."""
    return msgspec.convert(read_toml(_TABLE), dict[str, Published])


def find_published(name: str) -> Published:
    """Return the files of that name; InputError names all and the nearest."""
    if name not in published():
        raise InputError(refused_choice("published files", name, published()))
    return published()[name]


def addresses(name: str, mirror: str | None) -> list[tuple[PublishedFile, str]]:
    """The files of that name, each with where it is fetched from: MIRROR/NAME/FILE, or its publisher."""
    base = f"{mirror.rstrip('/')}/{quote(name)}/" if mirror else ""
    return [(file, f"{base}{quote(file.name)}" if base else file.url) for file in find_published(name).files]


def read_sizes(name: str, mirror: str | None) -> list[int | None]:
    """Ask the servers for the bytes of each file; None where one doesn't say."""
    with _client() as client:
        return [_size(client, url) for _, url in addresses(name, mirror)]


def fetch(name: str, folder: Path, mirror: str | None, on_bytes: OnBytes) -> list[Fetched]:
    """Fetch the files of that name to the folder, and unpack archives there.

    Raises InputError where a file isn't what was expected or can't be written, UnavailableError without a network.
    """
    files = addresses(name, mirror)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        busy = InputError(f"another `cotrail data get` writes to {folder}; wait for it")
        with exclusive_folder(folder, busy), _client() as client:
            return [_fetched(client, file, url, folder, on_bytes) for file, url in files]
    except OSError as error:
        raise InputError(
            f"{folder} can't be written ({error.strerror}); make room or name another folder with --to; "
            "what was fetched is kept, and the same command continues"
        ) from error


def _client() -> httpx2.Client:
    return httpx2.Client(**http_options(), timeout=TIMEOUT_SECONDS, follow_redirects=True)


def _asked(client: httpx2.Client, method: str, url: str, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    """The response, whose content isn't read yet."""
    asked = client.build_request(method, url, headers={"Accept-Encoding": "identity", **(headers or {})})
    try:
        return client.send(asked, stream=True)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UnavailableError(
            f"{urlsplit(url).netloc or url} can't be reached ({error}); without a network, copy the files from a "
            "machine that has one, or name a mirror with --mirror"
        ) from error


def _size(client: httpx2.Client, url: str) -> int | None:
    with closing(_asked(client, "HEAD", url)) as response:
        return _length(response)


def _length(response: httpx2.Response) -> int | None:
    """The bytes that a response says to have."""
    length = response.headers.get("Content-Length", "") if response.is_success else ""
    return int(length) if length.isdecimal() else None


def _fetched(client: httpx2.Client, file: PublishedFile, url: str, folder: Path, on_bytes: OnBytes) -> Fetched:
    path, complete = folder / file.name, folder / f"{file.name}.sha256"
    if path.exists():
        digest = file_digest(path).hex()
        if complete.exists() and complete.read_text().split()[:1] == [digest]:
            return Fetched(path=str(path), bytes=path.stat().st_size, sha256=digest, is_new=False)
        raise InputError(f"{path} is there, and isn't what `cotrail data get` fetched; move it away, or use --to")
    draft, tag = folder / f"{file.name}.part", folder / f"{file.name}.part.tag"
    resumed, got = _kept(draft, tag)[0], -1
    while True:
        try:
            _continue(client, url, draft, tag, on_bytes)
            break
        except _InterruptedError as lost:  # Once more as long as each connection brings something.
            if lost.got <= got:
                raise UnavailableError(
                    f"{url} was interrupted at {size(lost.got)}; the same command continues from there"
                ) from lost
            got = lost.got
    digest = file_digest(draft).hex()
    if file.sha256 not in ("", digest):
        draft.unlink()
        raise InputError(f"{url} has the SHA-256 {digest}, and its publisher states {file.sha256}; try another mirror")
    if file.unpack:
        _unpack(draft, path.name, folder)
    write_whole(complete, [f"{digest}  {file.name}\n".encode()])  # before the file: only with it the file is complete
    draft.rename(path)
    tag.unlink()
    return Fetched(path=str(path), bytes=path.stat().st_size, sha256=digest, resumed=resumed)


def _continue(client: httpx2.Client, url: str, draft: Path, tag: Path, on_bytes: OnBytes) -> None:
    """Fetch what the draft lacks, or all of it where it is of another version of the file."""
    have, version = _kept(draft, tag)
    headers = {"Range": f"bytes={have}-", "If-Range": version} if have else {}
    with closing(_asked(client, "GET", url, headers)) as response:
        if response.status_code == 416:  # The draft has all of the file, or more than it has now.
            if response.headers.get("Content-Range", "") == f"bytes */{have}":
                return
            draft.unlink()
            raise _InterruptedError(0)
        _check(response, url)
        start = have if response.status_code == 206 else 0
        length = _length(response)
        if length is not None and length > shutil.disk_usage(draft.parent).free:
            raise InputError(f"{draft.parent} has no room for {size(length)} more; make room, or use --to")
        with draft.open("ab" if start else "wb") as file:
            write_whole(tag, [_version(response).encode()])
            _write(response, file, start, None if length is None else start + length, on_bytes)


def _kept(draft: Path, tag: Path) -> tuple[int, str]:
    """How many bytes of a file are here that can be continued, and of which version of it they are."""
    version = tag.read_text() if tag.exists() and draft.exists() else ""
    return (draft.stat().st_size if version else 0), version


def _version(response: httpx2.Response) -> str:
    """What a request for the rest of the file names, so that it is of no other; empty where the server has nothing."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _check(response: httpx2.Response, url: str) -> None:
    advice = (
        "its publisher may have moved it: see the source that `cotrail data get` lists, or name a mirror with --mirror"
    )
    if response.status_code >= 500 or response.status_code == 429:
        raise UnavailableError(
            f"{url} answered {response.status_code}; try again later, or name a mirror with --mirror"
        )
    if not response.is_success:
        raise InputError(f"{url} answered {response.status_code}; {advice}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise InputError(f"{url} answered with a web page in place of the file; {advice}")


def _write(response: httpx2.Response, file: BinaryIO, start: int, whole: int | None, show: OnBytes) -> None:
    done, name = start, Path(file.name).stem
    try:
        for chunk in response.iter_raw():
            file.write(chunk)
            done += len(chunk)
            show(Downloading(name, done, whole))
    except httpx2.HTTPError as error:
        raise _InterruptedError(done) from error
    if whole is not None and done < whole:
        raise _InterruptedError(done)


def _unpack(archive: Path, name: str, folder: Path) -> None:
    """Unpack to the folder; no member leads out of it."""
    try:
        if name.endswith(".zip"):
            shutil.unpack_archive(archive, folder, "zip")
        else:
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
    except _BROKEN as error:
        archive.unlink()
        raise InputError(
            f"{name} can't be unpacked ({error}); it was removed: fetch it again, or from a mirror"
        ) from error
