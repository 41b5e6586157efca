"""docker-compose.yml and docker-compose.gpu.yml as Docker Compose itself reads them, which needs no engine."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE, GPU_FILE = "docker-compose.yml", "docker-compose.gpu.yml"
SECRETS = ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "FLOWER_USER", "FLOWER_PASSWORD")
PROFILES = ("elasticsearch", "tools", "gpu-1", "gpu-2", "gpu-3")


def commands() -> list[tuple[str, ...]]:
    """The Composes to try: those of TEST_COMPOSE, separated by colons, or else what is installed."""
    if given := os.environ.get("TEST_COMPOSE"):
        return [(path,) for path in given.split(":")]
    installed = (("docker", "compose"), ("docker-compose",))
    return [command for command in installed if shutil.which(command[0]) and version(command) is not None]


def version(command: Sequence[str]) -> tuple[int, ...] | None:
    """Its version; None where it is no Compose, as `docker` without the plugin."""
    said = subprocess.run([*command, "version", "--short"], capture_output=True, text=True, timeout=60)
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", said.stdout)
    return tuple(map(int, found.groups())) if found and said.returncode == 0 else None


def least() -> tuple[int, ...]:
    """The least version that the documentation states."""
    stated = re.search(r"Docker Compose (\d+)\.(\d+)\.(\d+) or newer", (ROOT / "docs" / "operations.md").read_text())
    assert stated is not None
    return tuple(map(int, stated.groups()))


@pytest.fixture(params=commands() or [()], ids=" ".join)
def compose(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if not request.param:
        pytest.skip("Docker Compose isn't installed; TEST_COMPOSE names one elsewhere, as .ci/run gets it")
    there = version(request.param)
    assert there is not None, f"{request.param} isn't Docker Compose"
    if there < least():
        pytest.skip(f"Docker Compose {there} is older than {least()}")
    return tuple(request.param)


@pytest.fixture
def variables(tmp_path: Path) -> Path:
    """A file of variables as docs/operations.md has it written."""
    file = tmp_path / ".env"
    file.write_text("".join(f"COTRAIL_{name}=only{name.lower().replace('_', '')}\n" for name in SECRETS))
    return file


def configuration(compose: Sequence[str], variables: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*compose, "--project-directory", str(ROOT), "--env-file", str(variables)]
    plain = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [*command, *options, "config"], cwd=ROOT, env=plain, capture_output=True, text=True, timeout=60
    )


def services(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    assert "level=warning" not in done.stderr
    found: dict[str, dict[str, Any]] = yaml.safe_load(done.stdout)["services"]
    return found


def all_of(*files: str) -> set[str]:
    return {name for file in files for name in yaml.safe_load((ROOT / file).read_text("utf-8"))["services"]}


def profiles(*names: str) -> list[str]:
    return [part for name in names for part in ("--profile", name)]


def test_it_takes_the_file_with_every_profile(compose: Sequence[str], variables: Path) -> None:
    read = services(configuration(compose, variables, *profiles(*PROFILES)))
    assert read.keys() == all_of(FILE)
    assert {profile for service in read.values() for profile in service.get("profiles", [])} == {
        "elasticsearch",
        "tools",
    }


def test_it_takes_both_files_with_every_profile_and_each_generation_worker_gets_a_gpu(
    compose: Sequence[str], variables: Path
) -> None:
    files = ("--file", FILE, "--file", GPU_FILE)
    read = services(configuration(compose, variables, *files, *profiles(*PROFILES)))
    assert read.keys() == all_of(FILE, GPU_FILE)
    workers = {name: service for name, service in read.items() if name.startswith("generation")}
    gpus = [service["deploy"]["resources"]["reservations"]["devices"] for service in workers.values()]
    assert sorted(each["device_ids"][0] for (each,) in gpus) == [str(number) for number in range(len(workers))]
    for service in workers.values():
        assert service["depends_on"].keys() == {"migrations", "redis"}
        assert service["environment"] == workers["generation"]["environment"]


@pytest.mark.parametrize("profile", [None, *PROFILES])
def test_each_profile_alone_is_whole(compose: Sequence[str], variables: Path, profile: str | None) -> None:
    files = ("--file", FILE, "--file", GPU_FILE)
    read = services(configuration(compose, variables, *files, *profiles(*([profile] if profile else []))))
    for service in read.values():
        assert service.get("depends_on", {}).keys() <= read.keys()
        assert set(service.get("profiles", [])) <= {profile}


def test_variables_name_the_files_and_profiles_too(compose: Sequence[str], variables: Path) -> None:
    with variables.open("a") as file:
        file.write(f"COMPOSE_FILE={FILE}:{GPU_FILE}\nCOMPOSE_PROFILES=gpu-1,gpu-2\n")
    assert {"generation", "generation-1", "generation-2"} <= services(configuration(compose, variables)).keys()


def test_limits_are_those_of_the_variables(compose: Sequence[str], variables: Path) -> None:
    with variables.open("a") as file:
        file.write("COTRAIL_REDIS_MEMORY=2g\nCOTRAIL_RETRIEVAL_CPUS=4\n")
    read = services(configuration(compose, variables))
    assert int(read["redis"]["deploy"]["resources"]["limits"]["memory"]) == 2 * 2**30
    assert float(read["retrieval"]["deploy"]["resources"]["limits"]["cpus"]) == 4


@pytest.mark.parametrize("name", SECRETS)
def test_it_refuses_to_start_without_a_password(compose: Sequence[str], variables: Path, name: str) -> None:
    lines = variables.read_text().splitlines(keepends=True)
    variables.write_text("".join(line for line in lines if f"COTRAIL_{name}=" not in line))
    refused = configuration(compose, variables)
    assert refused.returncode != 0
    assert f"COTRAIL_{name}" in refused.stderr
    assert "set it in .env" in refused.stderr
