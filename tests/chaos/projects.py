"""Two projects of a service, each with tokens, a run and other things that the other one must not see."""

import json
from pathlib import Path
from typing import Any

import httpx2
from msgspec import Struct

from cotrail.client.transport import RemoteTransport
from cotrail.services.actor import Scope
from cotrail.services.library.named_files import read_reference
from tests.conftest import wait_until
from tests.faults.stacked import SAMPLE, Cotrail

MODELS = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
SCRIPT = {"name": "trial", "questions": {}, "default": {"sentences": ["So the answer is: Ada."], "answer": "Ada"}}
LIMIT = 3
"""The number of questions of a run."""


COMMON = {
    "model": ["scripted"],
    "system": ["one-step", "ircot"],
    "dataset": ["jsonl"],
    "question": ["1", "sample-02"],
    "step": ["1", "2"],
}
"""What there is for everybody."""


class Project(Struct, frozen=True, kw_only=True):
    """A project.

    tokens: a secret for each scope; in_use: the ids of these. there: what there is of it, by the names of parameters.
    secrets: texts of which every part of it has one, which no request of others names.
    """

    name: str
    tokens: dict[str, str]
    in_use: frozenset[str]
    there: dict[str, list[Any]]
    secrets: tuple[str, ...]

    def request(self, name: str) -> dict[str, Any]:
        """A request for a run, which is accepted."""
        run = {"system": "one-step", "dataset": "jsonl", "corpus": "trial", "model": "scripted", "limit": LIMIT}
        return {**run, "questions": self.there["questions"][0], "name": name}


def prepare(home: Path, cotrail: Cotrail) -> None:
    """Start everything with a corpus and a model of fixed answers."""
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (home / "models.toml").write_text(MODELS)
    cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "trial")
    cotrail("up")


def make_projects(home: Path, cotrail: Cotrail, url: str, *names: str) -> list[Project]:
    """Make projects, each with what there can be in one."""
    admin = json.loads(cotrail("token", "create", "first", "--scope", "admin", "--json"))["secret"]
    with httpx2.Client(base_url=url, headers=_bearer(admin), timeout=60) as http:
        return [_made(home, url, http, name) for name in names]


def _made(home: Path, url: str, default: httpx2.Client, name: str) -> Project:
    _posted(default, "/v1/projects", {"name": name, "corpora": ["trial"], "models": ["scripted"]})
    *made, spare = [
        _posted(default, "/v1/tokens", {"name": f"{name}-{scope}", "scopes": [scope], "project": name})
        for scope in (*Scope, Scope.READ)
    ]
    project = Project(
        name=name,
        tokens={scope: each["secret"] for scope, each in zip(Scope, made, strict=True)},
        in_use=frozenset(each["id"] for each in made),
        there={**COMMON, "token": [spare["id"]]},
        secrets=(f"wonders of {name}",),
    )
    _fill(home, url, project)
    return project


def _fill(home: Path, url: str, project: Project) -> None:
    """Have it hold files, runs that have ended, a paused one, a corpus and an upload."""
    asked, admin = _questions(home, project), project.tokens[Scope.ADMIN]
    transport = RemoteTransport(url, admin)
    reference = transport.upload(str(asked))
    project.there["questions"] = project.there["files"] = [reference]
    project.there["digest"] = [read_reference(reference).digest]
    with httpx2.Client(base_url=url, headers=_bearer(admin), timeout=60) as http:
        runs = [_posted(http, "/v1/runs", project.request(f"{project.name}-{n}"))["runs"][0]["run"] for n in range(3)]
        _posted(http, f"/v1/runs/{runs[-1]}/pause", {})
        corpus = f"{project.name}-corpus"
        job = _posted(http, "/v1/corpora", {"name": corpus, "files": [transport.upload(str(SAMPLE / "corpus.jsonl"))]})
        upload = _posted(http, "/v1/uploads", {"digest": f"sha256:{'0' * 64}", "name": project.name, "bytes": 10})
        project.there.update(
            run=runs, runs=runs, against=runs, corpus=[corpus], job=[job["job"]], upload=[upload["upload"]]
        )
        ended = [f"/v1/runs/{run}" for run in runs[:-1]]
        wait_until(lambda: all(http.get(path).json()["state"] == "finished" for path in ended), "runs are finished")
        wait_until(lambda: http.get(f"/v1/corpora/{corpus}").status_code == 200, "a corpus is made")
    transport.close()


def _questions(home: Path, project: Project) -> Path:
    """The sample's questions with words that are the project's own."""
    file = home / f"{project.name}.jsonl"
    asked = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()[:LIMIT]]
    (secret,) = project.secrets
    file.write_text("\n".join(json.dumps({**each, "question": f"{each['question']} {secret}"}) for each in asked))
    return file


def _posted(http: httpx2.Client, path: str, body: dict[str, Any]) -> Any:
    answer = http.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
