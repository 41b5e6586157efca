"""docker-compose.yml, docker-compose.gpu.yml and the Dockerfile, as far as they can be checked without Docker."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from cotrail.common.processes import TUNED
from cotrail.configuration.settings import Settings
from cotrail.core.actions.kind import Role
from cotrail.workers.app import app, options
from cotrail.workers.health import VARIABLE
from tests.cases import each_case

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
GPU_FILE = ROOT / "docker-compose.gpu.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
GPU_SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(GPU_FILE.read_text("utf-8"))["services"]
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if "build" in service]
ONE_SHOT = {"migrations", "cotrail"}
WORKERS: tuple[Role, ...] = ("generation", "retrieval", "evidence")

EVERYWHERE = {"home", "database_url", "broker_url", "broker_prefix"}
SEARCHING = {name for name in Settings.model_fields if name.startswith("search_")}
CARRYING_OUT = {"lease_seconds", "heartbeat_seconds", "max_attempts", "deadlines", "stored_systems"}
NEEDED = {
    "migrations": EVERYWHERE,
    "generation": EVERYWHERE | CARRYING_OUT | {"model", "generation_slots", "batch_recovery_seconds"},
    "retrieval": EVERYWHERE | CARRYING_OUT | SEARCHING,
    "evidence": EVERYWHERE | CARRYING_OUT | {"generation_slots"},
    "maintenance": EVERYWHERE
    | {"lease_seconds", "sweep_seconds", "resend_seconds", "max_attempts", "retention_days", "stored_systems"},
    "api": EVERYWHERE
    | SEARCHING
    | {
        "model",
        "api_host",
        "api_port",
        "api_prefix",
        "api_proxies",
        "api_body_bytes",
        "upload_bytes",
        "upload_days",
        "openai_money",
        "streams",
    }
    | {"tokens_required", "public_hosts", "requests_per_minute", "flower_url"},
    "flower": EVERYWHERE,
    "cotrail": EVERYWHERE | SEARCHING | {"model"},
}
"""The settings that each service reads. The folder of the corpora is the same everywhere: that of their volume."""

services = pytest.mark.parametrize("name", SERVICES)
long_lived = pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT))
own = pytest.mark.parametrize("name", OWN)


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def variables(value: Any) -> set[str]:
    """The names of the variables in a part of the file."""
    return set(re.findall(r"\$\{(\w+)", str(value)))


def default(value: str) -> str:
    """What stands for a value where none of its variables is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def devices(service: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service["deploy"]["resources"].get("reservations", {}).get("devices", [])
    return found


@each_case("file", [FILE, GPU_FILE], ids=lambda file: file.name)
def test_the_files_follow_the_compose_specification(file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_all_parts_are_there() -> None:
    asked_for = {"postgres", "redis", "elasticsearch", "migrations", "generation", "retrieval", "maintenance", "flower"}
    asked_for.add("api")
    assert asked_for <= SERVICES.keys()


@each_case("name", WORKERS)
def test_workers_memory_is_tuned(name: str) -> None:
    assert TUNED.items() <= SERVICES[name]["environment"].items()


@services
def test_ports_are_published_on_loopback_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))
    assert SERVICES[name].get("network_mode") is None


def test_only_flower_and_the_service_are_on_a_network_that_leads_outside() -> None:
    outside = {name for name, network in COMPOSE["networks"].items() if not (network or {}).get("internal")}
    assert {name for name, service in SERVICES.items() if outside & set(service["networks"])} == {"flower", "api"}
    assert SERVICES["flower"]["ports"] == ["127.0.0.1:5555:5555"]
    assert SERVICES["api"]["ports"] == ["127.0.0.1:8420:8420"]
    assert SERVICES["api"]["environment"]["COTRAIL_TOKENS_REQUIRED"] == "true"


@long_lived
def test_what_runs_on_has_a_health_check_and_comes_back(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert SERVICES[name]["init"] is True


@each_case("name", sorted(ONE_SHOT))
def test_jobs_are_not_started_again(name: str) -> None:
    assert SERVICES[name]["restart"] == "no"


def test_flower_is_not_healthy_because_its_door_is_open() -> None:
    assert "FLOWER_UNAUTHENTICATED_API" not in FILE.read_text("utf-8")
    for name in ("COTRAIL_FLOWER_USER", "COTRAIL_FLOWER_PASSWORD"):
        assert ":?" in SERVICES["flower"]["environment"][name]


@each_case("name", WORKERS)
def test_workers_are_asked_themselves_whether_they_are_well(name: Role) -> None:
    assert f"inspect ping -t 10 -d {name}@$$(hostname)" in SERVICES[name]["healthcheck"]["test"][1]
    assert f"{name}@%h" in options(name)


@each_case("name", [*WORKERS, "maintenance"])
def test_each_is_asked_whether_it_works_where_it_says_so(name: str) -> None:
    assert "python -m cotrail.workers.health" in " ".join(SERVICES[name]["healthcheck"]["test"])
    assert SERVICES[name]["environment"][VARIABLE].startswith("/tmp/")


@each_case("name", WORKERS)
def test_workers_get_longer_to_stop_than_their_soft_shutdown_takes(name: str) -> None:
    assert seconds(SERVICES[name]["stop_grace_period"]) >= app.conf.worker_soft_shutdown_timeout + 5


def test_workers_are_started_by_the_command_line_and_tell_flower_of_their_tasks() -> None:
    for name in WORKERS:
        assert SERVICES[name]["command"] == ["cotrail", "worker", name, "--events"]
    assert set(get_args(Role)) == set(WORKERS)
    assert SERVICES["maintenance"]["command"] == ["cotrail", "worker", "maintenance"]
    assert SERVICES["retrieval"]["deploy"]["replicas"] > 1


def test_no_service_needs_a_gpu_unless_the_other_file_is_used() -> None:
    assert [name for name in SERVICES if devices(SERVICES[name])] == []


def test_the_other_file_gives_each_generation_worker_a_gpu_of_its_own() -> None:
    first, *further = GPU_SERVICES
    assert first == "generation"
    gpus = [device for service in GPU_SERVICES.values() for device in devices(service)]
    expected = [{"driver": "nvidia", "device_ids": [str(n)], "capabilities": ["gpu"]} for n in range(len(gpus))]
    assert gpus == expected
    assert len(gpus) == len(GPU_SERVICES) > 1
    for number, name in enumerate(further, start=1):
        assert GPU_SERVICES[name]["extends"] == {"file": FILE.name, "service": "generation"}
        assert GPU_SERVICES[name]["profiles"] == [f"gpu-{number}"]


@services
def test_every_service_has_limits_that_variables_change(name: str) -> None:
    limits = SERVICES[name]["deploy"]["resources"]["limits"]
    assert variables(limits) == {f"COTRAIL_{name.upper()}_{what}" for what in ("CPUS", "MEMORY")}
    assert re.fullmatch(r"\d+[mg]", default(limits["memory"]))
    # Docker refuses more CPUs than there are. 0 is no limit: models take all.
    assert 0 <= float(default(limits["cpus"])) <= 2
    assert (float(default(limits["cpus"])) == 0) == (name in {"generation", "evidence"})


@services
def test_no_log_grows_without_bounds(name: str) -> None:
    assert SERVICES[name]["logging"]["driver"] == "json-file"
    options = {key: default(value) for key, value in SERVICES[name]["logging"]["options"].items()}
    assert options == {"max-size": "10m", "max-file": "3"}


def test_redis_has_room_beside_what_it_may_hold() -> None:
    assert "maxmemory 512mb" in COMPOSE["configs"]["redis"]["content"]
    assert default(SERVICES["redis"]["deploy"]["resources"]["limits"]["memory"]) == "1g"


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
    mounted = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert {each.split(":")[0] for each in mounted if isinstance(each, str)} == COMPOSE["volumes"].keys()


def test_the_command_line_reads_and_writes_in_a_folder_of_the_host_as_its_user() -> None:
    (folder,) = [volume for volume in SERVICES["cotrail"]["volumes"] if isinstance(volume, dict)]
    assert (folder["type"], default(folder["source"]), folder["target"]) == ("bind", "./files", "/files")
    assert folder["bind"] == {"create_host_path": False}
    assert not folder.get("read_only")
    assert default(SERVICES["cotrail"]["user"]) == "10001:10001"
    assert variables(SERVICES["cotrail"]["user"]) == {"COTRAIL_UID"}
    base = stages()["base"]
    assert "groupadd --system --gid 10001 cotrail" in base
    assert "install -d -m 2775 -o cotrail -g cotrail /var/lib/cotrail /var/lib/cotrail/corpora /files" in base
    assert "WORKDIR /files" in base


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


def test_every_setting_is_needed_by_some_service() -> None:
    assert set.union(*NEEDED.values()) == Settings.model_fields.keys() - {"corpora", "start_seconds"}


@own
def test_own_services_have_the_settings_that_they_read_and_no_others(name: str) -> None:
    given = {key for key in SERVICES[name]["environment"] if re.match("COTRAIL_(?!FLOWER_(?!URL))", key)} - {VARIABLE}
    assert given == {f"COTRAIL_{field.upper()}" for field in NEEDED[name]}


@own
def test_settings_that_nobody_sets_are_as_without_compose(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in SERVICES[name]["environment"].items():
        if re.match("COTRAIL_(?!FLOWER_(?!URL))", key) and ":?" not in value:
            monkeypatch.setenv(key, default(value))
    read, unset = Settings(), Settings.model_construct()
    assert {field for field in NEEDED[name] if getattr(read, field) != getattr(unset, field)} == {
        "home",
        *(("api_host", "tokens_required") if name == "api" else ()),
    }


def test_models_and_their_keys_are_found_where_models_are_opened_or_pinned() -> None:
    for name in ("generation", "evidence", "cotrail"):
        assert SERVICES[name]["environment"]["HF_HOME"] == "/var/lib/cotrail/huggingface"
        assert SERVICES[name]["env_file"] == [{"path": "models.env", "required": False}]


def stages() -> dict[str, str]:
    """The body of each stage of the Dockerfile, by name."""
    parts = re.split(r"(?m)^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text("utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@own
def test_every_target_is_a_stage_that_ends_as_an_ordinary_account(name: str) -> None:
    body = stages()[SERVICES[name]["build"]["target"]]
    assert "USER cotrail" in body or name == "maintenance"
    if name not in {"cotrail", "evidence"}:
        started = " ".join(SERVICES[name]["command"]).removesuffix(" --events").rpartition("exec ")[2]
        assert started in " ".join(json.loads(re.findall(r"(?m)^CMD (.+)$", body)[0]))


def test_the_command_lines_image_draws_reports() -> None:
    body = stages()["cotrail"]
    assert "-r /requirements/reports.txt" in body
    assert 'ENTRYPOINT ["cotrail"]' in body


def test_what_stages_are_based_on_is_known_before_the_first_of_them() -> None:
    before, *_ = (ROOT / "Dockerfile").read_text("utf-8").partition("\nFROM ")
    used = re.findall(r"(?m)^FROM \S*\$\{(\w+)\}", (ROOT / "Dockerfile").read_text("utf-8"))
    assert set(used) == set(re.findall(r"(?m)^ARG (\w+)=\S+$", before))


def test_packages_come_before_code_so_that_their_layers_last() -> None:
    assert "/wheels" not in stages()["engines"]
    for name in ("retrieval", "cotrail", "api", "flower"):
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
    linked = {path.name for path in (ROOT / "cotrail").iterdir() if path.is_symlink()}
    assert allowed == packages | linked | {"pyproject.toml", "README.md", "LICENSE"}
