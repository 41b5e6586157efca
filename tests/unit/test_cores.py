"""How many cores a process may use, by what a container's control groups say."""

from pathlib import Path

import pytest

from cotrail.common import processes
from cotrail.common.processes import TUNED, tuned, usable_cores


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of 64 cores, with a folder of control groups and a file that says which are this process's."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(processes, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(processes, "OWN", tmp_path / "own")
    return tmp_path


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("", {}, 64),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "9900000 100000\n"}, 64),
        ("0::/pod/container\n", {"pod/container/cpu.max": "max 100000\n", "pod/cpu.max": "200000 100000\n"}, 2),
        ("0::/a/path/of/the/host\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/\n", {"cpu.max": "what is this\n"}, 64),
        (
            "3:cpu,cpuacct:/docker/x\n1:memory:/docker/x\n",
            {"cpu,cpuacct/docker/x/cpu.cfs_quota_us": "150000\n", "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        (
            "3:cpu,cpuacct:/docker/x\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
            64,
        ),
    ],
)
def test_the_least_quota_of_its_groups_counts(host: Path, own: str, files: dict[str, str], expected: int) -> None:
    write(host / "own", own)
    for name, content in files.items():
        write(host / "groups" / name, content)
    assert usable_cores() == expected


def test_a_system_without_control_groups_has_no_quota(host: Path) -> None:
    assert usable_cores() == 64


def test_affinity_counts_too(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert usable_cores() == 2


def test_a_worker_s_threads_are_those_of_its_quota_and_otherwise_what_libraries_choose(host: Path) -> None:
    assert tuned() == TUNED
    write(host / "own", "0::/\n")
    write(host / "groups" / "cpu.max", "200000 100000")
    assert tuned() == TUNED | {"OMP_NUM_THREADS": "2"}
