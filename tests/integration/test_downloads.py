"""Published files are fetched over HTTP: resumed, verified, unpacked, and refused in a sentence."""

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cotrail.data.datasets.registry import DATASETS
from cotrail.errors import InputError, UnavailableError
from cotrail.services.library import downloads
from cotrail.services.library.downloads import Downloading, Fetched, Published, PublishedFile, fetch, read_sizes

CONTENT = bytes(range(256)) * 4000


class Server:
    """A publisher's: what it has, and how it behaves."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.etag = '"one"'
        self.drop_after = len(CONTENT) * 2
        self.ranges = True
        self.status = 200
        self.content_type = "application/octet-stream"
        self.requests: list[dict[str, str]] = []
        self.url = ""


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server: Server, *arguments: Any) -> None:
        self.publisher = server
        super().__init__(*arguments)

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""

    def do_HEAD(self) -> None:
        self.send_response(self.publisher.status)
        self.send_header("Content-Length", str(len(self.publisher.content)))
        self.end_headers()

    def do_GET(self) -> None:
        publisher = self.publisher
        publisher.requests.append(dict(self.headers))
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range") == publisher.etag
        start = int(asked[1]) if asked and same and publisher.ranges else 0
        if start and start >= len(publisher.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(publisher.content)}")
            self.end_headers()
            return
        self.send_response(206 if start else publisher.status)
        self.send_header("Content-Length", str(len(publisher.content) - start))
        self.send_header("Content-Type", publisher.content_type)
        self.send_header("ETag", publisher.etag)
        self.end_headers()
        self.wfile.write(publisher.content[start : start + publisher.drop_after])


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server, whose file is published as `made-up`."""
    server = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, server))
    Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    server.url = f"http://127.0.0.1:{http.server_port}/questions.json?key=1"
    _publish(monkeypatch, PublishedFile(url=server.url))
    yield server
    http.shutdown()
    http.server_close()


def _publish(monkeypatch: pytest.MonkeyPatch, file: PublishedFile) -> None:
    made_up = Published(what="made up", source="here", licence="none", files=(file,))
    monkeypatch.setattr(downloads, "published", lambda: {"made-up": made_up})


def _fetch(folder: Path, mirror: str | None = None) -> Fetched:
    (fetched,) = fetch("made-up", folder, mirror, lambda _: None)
    return fetched


def test_a_file_comes_with_its_size_before_and_its_digest_after(publisher: Server, tmp_path: Path) -> None:
    seen: list[Downloading] = []
    assert read_sizes("made-up", None) == [len(CONTENT)]
    (fetched,) = fetch("made-up", tmp_path / "a" / "b", None, seen.append)
    path = tmp_path / "a" / "b" / "questions.json"
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert path.read_bytes() == CONTENT
    assert fetched == Fetched(path=str(path), bytes=len(CONTENT), sha256=digest)
    assert (path.parent / "questions.json.sha256").read_text() == f"{digest}  questions.json\n"
    assert seen[-1] == Downloading("questions.json", len(CONTENT), len(CONTENT))
    assert sorted(each.name for each in path.parent.iterdir()) == ["questions.json", "questions.json.sha256"]


def test_what_is_here_is_not_fetched_again(publisher: Server, tmp_path: Path) -> None:
    first = _fetch(tmp_path)
    again = _fetch(tmp_path)
    assert (again.is_new, again.sha256) == (False, first.sha256)
    assert len(publisher.requests) == 1


def test_a_connection_that_breaks_continues_where_it_was(publisher: Server, tmp_path: Path) -> None:
    publisher.drop_after = 300_000
    assert _fetch(tmp_path).sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert [each.get("Range") for each in publisher.requests] == [
        None, "bytes=300000-", "bytes=600000-", "bytes=900000-",
    ]  # fmt: skip


def test_a_connection_that_brings_nothing_more_ends_and_the_next_command_continues(
    publisher: Server, tmp_path: Path
) -> None:
    publisher.drop_after = 300_000
    publisher.ranges = False
    with pytest.raises(UnavailableError, match="continues from there"):
        _fetch(tmp_path)
    publisher.ranges, publisher.drop_after = True, len(CONTENT)
    assert _fetch(tmp_path).resumed == 300_000
    assert (tmp_path / "questions.json").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_fetched_whole(publisher: Server, tmp_path: Path) -> None:
    publisher.drop_after, publisher.ranges = 300_000, False
    with pytest.raises(UnavailableError):
        _fetch(tmp_path)
    publisher.content, publisher.etag, publisher.drop_after, publisher.ranges = CONTENT[::-1], '"two"', 2**30, True
    _fetch(tmp_path)
    assert (tmp_path / "questions.json").read_bytes() == CONTENT[::-1]


def test_a_version_that_the_server_is_not_sure_of_is_fetched_whole(publisher: Server, tmp_path: Path) -> None:
    publisher.etag, publisher.drop_after = 'W/"weak"', 300_000
    with pytest.raises(UnavailableError):
        _fetch(tmp_path)
    assert all("Range" not in each for each in publisher.requests)


def test_a_process_killed_after_the_last_byte_fetches_nothing_again(publisher: Server, tmp_path: Path) -> None:
    (tmp_path / "questions.json.part").write_bytes(CONTENT)
    (tmp_path / "questions.json.part.tag").write_text('"one"')
    assert _fetch(tmp_path).resumed == len(CONTENT)
    assert (tmp_path / "questions.json").read_bytes() == CONTENT


def test_a_draft_that_is_longer_than_the_file_is_fetched_whole(publisher: Server, tmp_path: Path) -> None:
    (tmp_path / "questions.json.part").write_bytes(CONTENT * 2)
    (tmp_path / "questions.json.part.tag").write_text('"one"')
    _fetch(tmp_path)
    assert (tmp_path / "questions.json").read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_an_archive_is_unpacked(kind: str, publisher: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("data/dev.json", "[]")
            archive.writestr("../outside.json", "[]")
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo("data/dev.json")
            member.size = 2
            tar.addfile(member, io.BytesIO(b"[]"))
    publisher.content = packed.getvalue()
    _publish(monkeypatch, PublishedFile(url=publisher.url, name=f"all.{kind}", unpack=True))
    _fetch(tmp_path / "to")
    assert (tmp_path / "to" / "data" / "dev.json").read_text() == "[]"
    assert not (tmp_path / "outside.json").exists()


def test_an_archive_that_leads_out_of_its_folder_is_refused(
    publisher: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../outside.json"))
    publisher.content = packed.getvalue()
    _publish(monkeypatch, PublishedFile(url=publisher.url, name="all.tar", unpack=True))
    with pytest.raises(InputError, match=r"all\.tar can't be unpacked"):
        _fetch(tmp_path / "to")
    assert not (tmp_path / "outside.json").exists()


@pytest.mark.parametrize("name", ["all.zip", "all.tar.gz"])
def test_what_is_no_archive_is_refused_and_removed(
    name: str, publisher: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _publish(monkeypatch, PublishedFile(url=publisher.url, name=name, unpack=True))
    with pytest.raises(InputError, match="can't be unpacked"):
        _fetch(tmp_path)
    assert not (tmp_path / f"{name}.part").exists()


def test_a_digest_that_differs_from_the_publishers_is_refused(
    publisher: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _publish(monkeypatch, PublishedFile(url=publisher.url, sha256="0" * 64))
    with pytest.raises(InputError, match="its publisher states 0000"):
        _fetch(tmp_path)
    assert not (tmp_path / "questions.json").exists()


def test_a_file_of_somebody_else_is_left_alone(publisher: Server, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text("mine")
    with pytest.raises(InputError, match="move it away"):
        _fetch(tmp_path)
    assert (tmp_path / "questions.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("status", "content_type", "said"),
    [(404, "text/plain", "answered 404"), (200, "text/html; charset=utf-8", "answered with a web page")],
)
def test_what_is_not_the_file_is_refused(
    status: int, content_type: str, said: str, publisher: Server, tmp_path: Path
) -> None:
    publisher.status, publisher.content_type = status, content_type
    with pytest.raises(InputError, match=said):
        _fetch(tmp_path)


def test_a_server_that_is_busy_is_tried_later(publisher: Server, tmp_path: Path) -> None:
    publisher.status = 503
    with pytest.raises(UnavailableError, match="answered 503; try again later"):
        _fetch(tmp_path)
    assert read_sizes("made-up", None) == [None]


@pytest.mark.parametrize("mirror", ["http://127.0.0.1:1", "nowhere", "ftp://example.org"])
def test_without_a_network_the_message_says_so(mirror: str, publisher: Server, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"can't be reached .*--mirror"):
        _fetch(tmp_path, mirror)


def test_a_mirror_has_a_folder_for_each_name(publisher: Server, tmp_path: Path) -> None:
    _fetch(tmp_path, publisher.url.split("/questions")[0] + "/mirror/")
    assert (tmp_path / "questions.json").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_named(publisher: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written"):
        _fetch(tmp_path / "file")


def test_all_published_files_have_an_address_a_source_and_a_licence() -> None:
    everything = downloads.published()
    for name, published in everything.items():
        assert published.licence, name
        assert published.source.startswith("https://"), name
        names = [file.name for file in published.files]
        assert len(set(names)) == len(names), name
        assert all(re.fullmatch(r"[\w.-]+", each) for each in names), name
        assert all(file.url.startswith(("https://", "http://")) for file in published.files), name
    assert {"hotpotqa", "2wikimultihopqa", "musique", "iirc", "strategyqa"} <= DATASETS.keys() & everything.keys()
