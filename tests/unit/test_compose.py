"""docker-compose.yml and the Dockerfile, as far as they can be checked without Docker."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from configuration.settings import Settings
from workers.allocator import TUNED
from workers.app import app
from workers.ready import VARIABLE

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if "build" in service]
ONE_SHOT = {"migrations", "cotrail"}
WORKERS = ("generation", "retrieval", "evidence")

services = pytest.mark.parametrize("name", SERVICES)
long_lived = pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT))
own = pytest.mark.parametrize("name", OWN)


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def option(name: str, flag: str) -> str:
    command: list[str] = SERVICES[name]["command"]
    return command[command.index(flag) + 1]


def test_the_file_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_all_parts_are_there() -> None:
    asked_for = {"postgres", "redis", "elasticsearch", "migrations", "generation", "retrieval", "maintenance", "flower"}
    assert asked_for <= SERVICES.keys()


@pytest.mark.parametrize("name", WORKERS)
def test_workers_memory_is_tuned(name: str) -> None:
    assert TUNED.items() <= SERVICES[name]["environment"].items()


@services
def test_ports_are_published_on_loopback_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))
    assert SERVICES[name].get("network_mode") is None


def test_only_flower_is_on_a_network_that_leads_outside() -> None:
    outside = {name for name, network in COMPOSE["networks"].items() if not (network or {}).get("internal")}
    assert {name for name, service in SERVICES.items() if outside & set(service["networks"])} == {"flower"}
    assert SERVICES["flower"]["ports"] == ["127.0.0.1:5555:5555"]


@long_lived
def test_what_runs_on_has_a_health_check_and_comes_back(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert SERVICES[name]["init"] is True


@pytest.mark.parametrize("name", sorted(ONE_SHOT))
def test_jobs_are_not_started_again(name: str) -> None:
    assert SERVICES[name]["restart"] == "no"


def test_flower_is_not_healthy_because_its_door_is_open() -> None:
    assert "FLOWER_UNAUTHENTICATED_API" not in FILE.read_text("utf-8")
    assert SERVICES["flower"]["environment"]["FLOWER_READ_ONLY"] == "true"
    assert SERVICES["flower"]["environment"]["FLOWER_BASIC_AUTH"].count(":?") == 2


@pytest.mark.parametrize("name", WORKERS)
def test_workers_are_asked_themselves_whether_they_are_well(name: str) -> None:
    assert f"inspect ping -t 10 -d {name}@$$(hostname)" in SERVICES[name]["healthcheck"]["test"][1]
    assert option(name, "-n") == f"{name}@%h"


@pytest.mark.parametrize("name", [*WORKERS, "maintenance"])
def test_each_is_asked_whether_it_works_where_it_says_so(name: str) -> None:
    assert "python -m workers.health" in " ".join(SERVICES[name]["healthcheck"]["test"])
    assert SERVICES[name]["environment"][VARIABLE].startswith("/tmp/")


@pytest.mark.parametrize("name", WORKERS)
def test_workers_get_longer_to_stop_than_their_soft_shutdown_takes(name: str) -> None:
    assert seconds(SERVICES[name]["stop_grace_period"]) >= app.conf.worker_soft_shutdown_timeout + 5


def test_every_queue_has_a_worker() -> None:
    served = [queue for name in WORKERS for queue in option(name, "-Q").split(",")]
    assert sorted(served) == sorted(app.amqp.queues)


def test_pools_fit_what_the_workers_do() -> None:
    assert option("generation", "-P") == "threads"
    assert option("generation", "-c") == SERVICES["generation"]["environment"]["COTRAIL_GENERATION_SLOTS"]
    assert option("retrieval", "-P") == "threads"
    assert SERVICES["retrieval"]["deploy"]["replicas"] > 1


def test_the_generation_worker_alone_reserves_a_gpu() -> None:
    def devices(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            SERVICES[name].get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
        )
        return found

    assert [name for name in SERVICES if devices(name)] == ["generation"]
    assert devices("generation") == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]


def test_redis_keeps_its_queues() -> None:
    lines = COMPOSE["configs"]["redis"]["content"].splitlines()
    assert {"appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"} <= set(lines)
    assert SERVICES["redis"]["command"] == ["redis-server", SERVICES["redis"]["configs"][0]["target"]]


def test_migrations_are_waited_for() -> None:
    for name in (*WORKERS, "maintenance"):
        assert SERVICES[name]["depends_on"]["migrations"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrations"]["depends_on"]["postgres"] == {"condition": "service_healthy"}


def test_data_is_in_named_volumes() -> None:
    assert SERVICES["postgres"]["volumes"] == ["database:/var/lib/postgresql"]
    assert SERVICES["redis"]["volumes"] == ["redis:/data"]
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == COMPOSE["volumes"].keys()


def test_workers_can_only_read_the_indexes() -> None:
    home = "home:/var/lib/cotrail:ro"
    assert SERVICES["retrieval"]["volumes"] == [home, "corpora:/var/lib/cotrail/corpora:ro"]
    assert SERVICES["generation"]["volumes"] == SERVICES["evidence"]["volumes"] == [home]


def test_no_secret_has_a_default_or_stands_in_the_file() -> None:
    text = re.sub(r"#.*", "", FILE.read_text("utf-8"))
    secret = re.compile(r"\$\{(COTRAIL_\w*(?:PASSWORD|USER))([^}]*)\}")
    assert {match[1] for match in secret.finditer(text)} == {
        "COTRAIL_POSTGRES_PASSWORD",
        "COTRAIL_REDIS_PASSWORD",
        "COTRAIL_FLOWER_USER",
        "COTRAIL_FLOWER_PASSWORD",
    }
    assert all(match[2].startswith(":?") for match in secret.finditer(text))
    for line in re.findall(r"(?im)^.*(?:password|requirepass|auth\b).*$", text):
        assert "${" in line, line


@services
def test_no_secret_is_on_a_command_line(name: str) -> None:
    service = SERVICES[name]
    spoken = [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]
    assert not [part for part in spoken if "PASSWORD" in part]


@own
def test_own_services_have_no_rights_to_spare(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


@own
def test_own_services_are_configured_by_variables_that_cotrail_reads(name: str) -> None:
    own = {key for key in SERVICES[name]["environment"] if key.startswith("COTRAIL_")} - {VARIABLE}
    assert {"COTRAIL_DATABASE_URL", "COTRAIL_BROKER_URL", "COTRAIL_HOME"} <= own
    assert own <= {f"COTRAIL_{field.upper()}" for field in Settings.model_fields}


def stages() -> dict[str, str]:
    """The body of each stage of the Dockerfile, by name."""
    parts = re.split(r"(?m)^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text("utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@own
def test_every_target_is_a_stage_that_ends_as_an_ordinary_account(name: str) -> None:
    body = stages()[SERVICES[name]["build"]["target"]]
    assert "USER cotrail" in body or name == "maintenance"
    if name not in {"maintenance", "cotrail"}:
        assert f'CMD ["{SERVICES[name]["command"][0]}"' in body


def test_what_stages_are_based_on_is_known_before_the_first_of_them() -> None:
    before, *_ = (ROOT / "Dockerfile").read_text("utf-8").partition("\nFROM ")
    used = re.findall(r"(?m)^FROM \S*\$\{(\w+)\}", (ROOT / "Dockerfile").read_text("utf-8"))
    assert set(used) == set(re.findall(r"(?m)^ARG (\w+)=\S+$", before))


def test_packages_come_before_code_so_that_their_layers_last() -> None:
    for name in ("retrieval", "generation", "flower"):
        body = stages()[name]
        assert body.index("/requirements/") < body.index("/wheels")


def test_a_retrieval_worker_has_no_model() -> None:
    body = stages()["retrieval"]
    assert re.findall(r"-r /requirements/(\w+)", body) == ["retrieval", "elasticsearch"]
    assert not re.search(r"torch|llama", re.sub(r"#.*", "", body))


def test_what_the_wheel_is_built_from_gets_into_the_build() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    found = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]["find"]
    packages = {pattern.rstrip("*") for pattern in found["include"]}
    assert allowed == packages | {"pyproject.toml", "README.md", "LICENSE"}
