"""Files that are uploaded: by their digests, whole and in pieces, through lost connections; and paths of the server."""

import hashlib
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from litestar.testing import TestClient
from tenacity import wait_none

from cotrail.api.app import application
from cotrail.client.calls import Call
from cotrail.client.transport import PIECE_BYTES, RemoteTransport, Uploading
from cotrail.configuration.settings import settings
from cotrail.errors import InputError, QuotaExceededError, TooLargeError, UnavailableError, UnknownNameError
from cotrail.services.actor import ALL_SCOPES, Actor, acting
from cotrail.services.library import uploaded_files
from cotrail.services.library.named_files import NamesFiles, check_file_name, moved
from cotrail.services.library.uploaded_files import (
    ENTRY_BYTES,
    MOST_LEVELS,
    UploadedPaths,
    fill_folder,
    named_without_place,
    remove_unused,
    uploaded_file,
)
from cotrail.services.library.uploads import FILE_ENTRIES
from cotrail.services.operations.all_operations import OPERATIONS
from cotrail.services.operations.operation import Operation
from cotrail.services.runs.experiments import ExperimentRequest
from cotrail.services.runs.forking import ForkRequest
from cotrail.services.runs.jobs import IndexRequest
from cotrail.services.runs.judging import JudgeRequest
from cotrail.services.runs.pinning import file_record, recorded_file
from cotrail.services.runs.requests import AskRequest, RunRequest
from tests.cases import each_case
from tests.conftest import wait_until
from tests.integration.asked_service import HERE, FromHere
from tests.integration.serving import Server, serving

PROBLEM = "application/problem+json"

CONTENT = b'{"id": "1", "question": "Who?"}\n'


def path_of(text: str) -> str:
    """The path that a request of its own gets for a reference."""
    return UploadedPaths().path_of(text)


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def home(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    settings.cache_clear()
    return tmp_path / "home"


@pytest.fixture
def client(home: Path) -> Iterator[TestClient[Any]]:
    with TestClient(FromHere(application()), base_url=HERE) as client:
        yield client


def put(client: TestClient[Any], content: bytes = CONTENT, name: str = "q.jsonl", of: bytes | None = None) -> Any:
    return client.put(f"/v1/files/{digest(content if of is None else of)}", params={"name": name}, content=content)


def test_a_file_is_kept_under_its_digest_and_name(client: TestClient[Any], home: Path) -> None:
    place = f"/v1/files/{digest(CONTENT)}"
    assert client.head(place).status_code == 404
    said = put(client)
    assert (said.status_code, said.json()) == (200, {"digest": digest(CONTENT), "name": "q.jsonl", "bytes": 32})
    assert put(client).json() == client.get(place).json() == said.json()
    assert client.head(place, params={"name": "q.jsonl"}).status_code == 200
    assert client.head(place, params={"name": "other.jsonl"}).status_code == 404
    kept = home / "files" / "default" / digest(CONTENT).removeprefix("sha256:") / "q.jsonl"
    assert path_of(f"{digest(CONTENT)}/q.jsonl") == path_of(digest(CONTENT)) == str(kept)
    assert kept.read_bytes() == CONTENT


def test_bytes_that_have_another_digest_are_refused_and_leave_nothing(client: TestClient[Any], home: Path) -> None:
    said = put(client, of=b"other")
    assert (said.status_code, said.headers["content-type"]) == (422, "application/problem+json")
    assert "send the file again" in said.json()["detail"]
    assert [path for path in (home / "files").rglob("*") if path.is_file()] == []


@each_case("name", ["", ".", "..", "a/b", "/etc/passwd", "a\\b", "a\nb", "a\0b", "n" * 256])
def test_a_name_is_no_path(client: TestClient[Any], name: str) -> None:
    assert put(client, name=name).status_code == 422
    with pytest.raises(InputError, match="isn't a name for a file"):
        check_file_name(name)


def test_files_larger_than_the_setting_are_refused(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_UPLOAD_BYTES", "10")
    settings.cache_clear()
    assert put(client).status_code == 413
    begun = client.post("/v1/uploads", json={"digest": digest(CONTENT), "name": "q.jsonl", "bytes": 11})
    assert (begun.status_code, begun.json()["type"].rpartition("#")[2]) == (413, "too-large")


def test_a_piece_goes_on_where_the_last_one_ended(client: TestClient[Any]) -> None:
    announced = {"digest": digest(CONTENT), "name": "q.jsonl", "bytes": len(CONTENT)}
    key = client.post("/v1/uploads", json=announced).json()["upload"]

    def piece(start: int, end: int) -> Any:
        return client.patch(f"/v1/uploads/{key}", content=CONTENT[start:end], headers={"Upload-Offset": str(start)})

    assert piece(0, 10).json()["offset"] == 10
    assert piece(0, 10).status_code == piece(11, 20).status_code == 409
    assert client.get(f"/v1/uploads/{key}").json()["offset"] == 10
    said = client.post("/v1/uploads", json=announced).json()
    assert (said["offset"], said["done"]) == (10, False)
    assert piece(10, 32).json()["done"] is True
    assert client.get(f"/v1/uploads/{key}").status_code == 404
    assert client.post("/v1/uploads", json=announced).json()["done"] is True
    assert Path(path_of(digest(CONTENT))).read_bytes() == CONTENT


def test_pieces_with_another_digest_are_sent_from_their_beginning(client: TestClient[Any]) -> None:
    announced = {"digest": digest(b"other"), "name": "q.jsonl", "bytes": 5}
    key = client.post("/v1/uploads", json=announced).json()["upload"]
    wrong = client.patch(f"/v1/uploads/{key}", content=b"wrong", headers={"Upload-Offset": "0"})
    assert (wrong.status_code, wrong.json()["title"]) == (422, "input")
    key = client.post("/v1/uploads", json=announced).json()["upload"]
    assert client.patch(f"/v1/uploads/{key}", content=b"too long", headers={"Upload-Offset": "0"}).status_code == 413
    right = client.patch(f"/v1/uploads/{key}", content=b"other", headers={"Upload-Offset": "0"})
    assert right.json()["done"] is True


def test_projects_have_files_of_their_own(client: TestClient[Any], home: Path) -> None:
    put(client)
    with acting(Actor(name="a", project="foreign", scopes=ALL_SCOPES)):
        with pytest.raises(UnknownNameError):
            uploaded_file(digest(CONTENT))
        with pytest.raises(InputError, match="upload it: PUT"):
            path_of(digest(CONTENT))


@pytest.fixture
def limited(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int | None], Any]]:
    """Limits what the default project's files may take; what was removed is noticed at once."""

    def limit(most: int | None) -> Any:
        return client.patch("/v1/projects/default", json={"stored_bytes": most}).json()["stored_bytes"]

    monkeypatch.setattr(uploaded_files, "LOOK_SECONDS", 0)
    yield limit
    assert limit(None) is None


def test_the_files_of_a_project_have_a_quota_in_bytes(
    client: TestClient[Any], home: Path, limited: Callable[[int | None], Any]
) -> None:
    one = len(CONTENT) + FILE_ENTRIES * ENTRY_BYTES
    assert put(client).status_code == 200
    assert limited(3 * one + 3 * ENTRY_BYTES) == 3 * one + 3 * ENTRY_BYTES  # two more, and not a fourth
    assert [put(client, CONTENT.replace(b"1", each)).status_code for each in (b"2", b"3", b"4")] == [200, 200, 429]
    refused = put(client, b"other")
    assert refused.json()["type"].endswith("#quota-exceeded")
    assert "ask for a larger quota" in refused.json()["detail"]
    begun = client.post("/v1/uploads", json={"digest": digest(b"o" * 9000), "name": "o", "bytes": 9000})
    assert begun.status_code == 429
    for folder in (home / "files" / "default").iterdir():
        shutil.rmtree(folder) if folder.name in {digest(CONTENT).removeprefix("sha256:"), "arriving"} else None
    assert put(client, b"other").status_code == 200  # a file that was removed made room
    limited(0)
    assert put(client, b"").status_code == 429


def test_requests_at_once_do_not_exceed_the_quota_together(
    client: TestClient[Any], home: Path, limited: Callable[[int | None], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploaded_files, "LOOK_SECONDS", 3600)
    limited(10 * 2**20)
    with ThreadPoolExecutor(8) as pool:
        bodies = [bytes([each]) * 2**20 for each in range(20)]
        answers = list(pool.map(partial(put, client), bodies))
    assert {each.status_code for each in answers} == {200, 429}
    kept = sum(path.stat().st_size for path in (home / "files").rglob("*") if path.is_file())
    assert kept < 10 * 2**20


def test_folders_of_empty_files_take_room(listed: "Put", limited: Callable[[int | None], Any]) -> None:
    limited(100 * ENTRY_BYTES)
    assert Path(path_of(listed(dict.fromkeys(map(str, range(10)))))).is_dir()
    with pytest.raises(QuotaExceededError, match="the uploaded files of the project default would take"):
        path_of(listed(dict.fromkeys(map(str, range(100)))))


def test_what_nobody_uses_is_removed(client: TestClient[Any], home: Path) -> None:
    put(client)
    assert remove_unused(1) == 0
    # Folders are removed once they are empty for as long.
    wait_until(lambda: remove_unused(0) == 0 and not (home / "files").exists(), "the files are removed")
    with pytest.raises(InputError, match="upload it: PUT"):
        path_of(digest(CONTENT))


@pytest.fixture
def server(home: Path, tmp_path: Path) -> Iterator[Server]:
    with serving({"COTRAIL_HOME": str(home)}, tmp_path / "log") as server:
        yield server


@pytest.fixture
def transport(server: Server) -> Iterator[RemoteTransport]:
    transport = RemoteTransport(server.url)
    yield transport
    transport.close()


def test_a_folder_is_the_same_folder_on_the_server(transport: RemoteTransport, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "below").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nText.\n")
    (folder / "below" / "b.txt").write_text("Other text.\n")
    (folder / "below" / "same.txt").write_text("Other text.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.md").write_text("hidden")
    reference = transport.upload(str(folder))
    made = Path(path_of(reference))
    assert made.name == "notes"
    assert {str(each.relative_to(made)): each.read_bytes() for each in made.rglob("*") if each.is_file()} == {
        "a.md": b"# A\n\nText.\n",
        "below/b.txt": b"Other text.\n",
        "below/same.txt": b"Other text.\n",
        "picture.png": b"",
    }
    assert path_of(reference) == str(made)
    assert file_record(made)["path"] == "notes"


def test_a_list_of_a_folder_leads_out_of_none(transport: RemoteTransport, tmp_path: Path) -> None:
    for name in ("../a.txt", "/etc/a.txt", "a/../../b.txt", ""):
        listed = tmp_path / "list.json"
        listed.write_text(f'{{"{name}": null}}')
        reference = transport.upload(str(listed))
        with pytest.raises(InputError, match="isn't a name for a file"):
            path_of(f"folder:{reference}")


Put = Callable[..., str]


@pytest.fixture
def listed(client: TestClient[Any]) -> Put:
    """Uploads a list of a folder and returns the reference to the folder."""

    def put_list(files: dict[str, str | None]) -> str:
        content = json.dumps(files).encode()
        assert put(client, content, "list").status_code == 200
        return f"folder:{digest(content)}/list"

    return put_list


def refusal(client: TestClient[Any], *files: str) -> str:
    """What is said where these files can't make a corpus; nothing may be written for them."""
    places = [str(number) for number, _ in enumerate(files)]
    said = client.post("/v1/corpora", json={"name": "mine", "files": files, "places": places})
    assert (said.status_code, said.headers["content-type"]) in ((413, PROBLEM), (422, PROBLEM)), said.text
    assert not list(settings().files_path.rglob("folders/*/*"))
    told: str = said.json()["detail"]
    assert "\n" not in told
    return told


def test_lists_that_no_folder_can_have_are_refused(client: TestClient[Any], listed: Put) -> None:
    deep = listed({"a.md": None})
    for _ in range(MOST_LEVELS + 1):
        deep = listed({"f": deep})
    file = f"{digest(CONTENT)}/q.jsonl"
    put(client)
    below = listed({"b": file})
    assert "is a file and a folder" in refusal(client, listed({"a": None, "a/b": None}))
    assert "is a file and a folder" in refusal(client, listed({"a/b": below, "a": file}))
    assert "two files at 'a/b'" in refusal(client, listed({"a": below, "a/b": file}))
    assert "two files at 'a/b'" in refusal(client, listed({"a//b": file, "a/./b": file}))
    assert "too long" in refusal(client, listed({"/".join(["a" * 200] * 25): None}))
    assert "too long" in refusal(client, deep)
    assert put(client, b"[]", "list").status_code == 200
    assert "is no list" in refusal(client, f"folder:{digest(b'[]')}/list")


def test_what_lists_come_to_is_counted_as_a_whole(
    client: TestClient[Any], listed: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploaded_files, "MOST_FILES", 1_000)
    many = listed({f"{number}.md": None for number in range(12)})
    wide = listed({str(number): many for number in range(12)})
    third = listed({str(number): wide for number in range(12)})
    assert "more than 1,000 files" in refusal(client, third)
    assert "more than 1,000 files" in refusal(
        client, listed({"/".join([str(each), *"a" * 60]): None for each in range(20)})
    )
    uploaded = UploadedPaths()

    def place_eight() -> None:
        for _ in range(8):
            uploaded.path_of(wide)

    with pytest.raises(TooLargeError, match=r"more than 1,000 files"):
        place_eight()
    put(client)
    large = listed({"a": digest(CONTENT), "b": digest(CONTENT)})
    monkeypatch.setenv("COTRAIL_UPLOAD_BYTES", str(2 * len(CONTENT)))
    settings.cache_clear()
    assert Path(path_of(large)).is_dir()
    with pytest.raises(TooLargeError, match="together"):
        fill_folder(settings().home / "made", {"a": large, "b": large})


def test_a_large_file_gets_through_lost_connections_and_a_killed_server(
    server: Server, transport: RemoteTransport, tmp_path: Path
) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_bytes(b"0123456789abcdef" * (PIECE_BYTES * 5 // 32))
    pieces: list[int] = []

    def send(call: Call) -> bytes:
        if call.method != "PATCH":
            return transport._send(call)
        pieces.append(len(call.body or b""))
        if len(pieces) == 1:  # the connection is lost in the middle
            send_half(server, call)
            raise UnavailableError("lost")
        answer = transport._send(call)
        if len(pieces) == 2:  # the answer is lost, and the server killed
            server.kill()
            server.start()
            raise UnavailableError("lost")
        return answer

    reference = Uploading(send, wait_none()).upload(str(file))
    assert Path(path_of(reference)).read_bytes() == file.read_bytes()
    assert pieces[0] == PIECE_BYTES
    assert sum(pieces[1:]) < file.stat().st_size  # what came of the first piece wasn't sent again
    assert Uploading(send, wait_none()).upload(str(file)) == reference
    assert len(pieces) == 3


def send_half(server: Server, call: Call) -> None:
    """Sends half of a piece and closes the connection once the server has some of it."""
    body = call.body or b""
    there = f"{server.url}{call.path}"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = (
            f"PATCH {call.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpload-Offset: 0\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[: len(body) // 2])
        wait_until(lambda: httpx2.get(there).json()["offset"] > 0, "the server has some of the piece", 30)


def test_a_record_of_an_uploaded_file_has_its_name(client: TestClient[Any], home: Path, tmp_path: Path) -> None:
    put(client)
    path = path_of(f"{digest(CONTENT)}/q.jsonl")
    record = file_record(Path(path))
    assert record == {"path": "q.jsonl", "sha256": digest(CONTENT).removeprefix("sha256:")}
    assert str(recorded_file("run", record)) == path
    assert named_without_place(f"{path}, line 1: bad") == "q.jsonl, line 1: bad"
    own = tmp_path / "own.json"
    own.write_text("{}")
    assert recorded_file("run", file_record(own)) == own


REQUESTS: dict[type, Callable[[str], Any]] = {
    RunRequest: lambda path: RunRequest(system="ircot", dataset="jsonl", questions=path),
    AskRequest: lambda path: AskRequest(question="Who built it?", demonstrations=path),
    ForkRequest: lambda path: ForkRequest(run="r", plan=path),
    JudgeRequest: lambda path: JudgeRequest(run="r", rubric=path),
    IndexRequest: lambda path: IndexRequest(name="mine", files=(path,), places=("a",)),
    ExperimentRequest: lambda path: ExperimentRequest(experiment={}, files={"a": path}),
}
"""Requests with files, each with a path in all of its fields that name files."""


def file_parameters(operation: Operation[Any, Any]) -> Iterator[tuple[str, type]]:
    for name, parameter in operation.parameters.items():
        of = parameter.annotation
        if isinstance(of, type) and (issubclass(of, Path) or hasattr(of, "with_files")):
            yield name, of
        elif "Path" in str(of):
            yield name, Path


WITH_FILES = {
    f"{name}.{parameter}": of for name, operation in OPERATIONS.items() for parameter, of in file_parameters(operation)
}


@each_case("of", WITH_FILES.values(), ids=WITH_FILES)
def test_no_request_names_a_path_of_the_server(home: Path, of: type) -> None:
    """Of every operation with files, by their types; a new type needs an example among the requests."""
    for path in ("/etc/passwd", "../secret.json", "models.toml", "~/x", "sha256:abc", "file:///etc/passwd"):
        value = Path(path) if of is Path else REQUESTS[of](path)
        assert of is Path or isinstance(value, NamesFiles)
        with pytest.raises(InputError, match="isn't a file of the service"):
            moved(value, path_of)
