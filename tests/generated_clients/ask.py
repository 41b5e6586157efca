"""Asks a service by the client that openapi-python-client made: address, token, a file of questions and its digest."""

import io
import json
import sys
from pathlib import Path

from generated.api.live import live_run_events
from generated.api.runs import runs_cancel, runs_show, runs_submit
from generated.api.systems import systems_index
from generated.api.uploads import uploads_put
from generated.api.whoami import whoami_show
from generated.client import AuthenticatedClient
from generated.models import Problem, RunDetails, RunRequest, RunsCancelBody, Submitted, UploadedFile, WhoAmI
from generated.types import File


def told(problem: object) -> list[object]:
    assert isinstance(problem, Problem)
    return [problem.status, problem.type_.rpartition("#")[2]]


url, token, questions, digest = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)

who = whoami_show.sync(client=client)
assert isinstance(who, WhoAmI)
systems = systems_index.sync(client=client)
assert isinstance(systems, list)
content = File(payload=io.BytesIO(Path(questions).read_bytes()))
assert isinstance(uploads_put.sync(digest, client=client, body=content, name="questions.jsonl"), UploadedFile)
request = RunRequest(system="zero-shot", dataset="jsonl", questions=digest, model="scripted")
submitted = [runs_submit.sync(client=client, body=request, idempotency_key="key") for _ in range(2)]
runs = [each.runs[0].run for each in submitted if isinstance(each, Submitted)]
runs_cancel.sync(runs[0], client=client, body=RunsCancelBody())
shown = runs_show.sync(runs[0], client=client)
assert isinstance(shown, RunDetails)
events = live_run_events.sync(runs[0], client=client)
assert isinstance(events, str)
wrong = RunRequest(system="zero-shot", dataset="jsonl", questions=digest, limit=0)
answers = {
    "name": who.name,
    "scopes": who.scopes,
    "systems": [each.name for each in systems],
    "runs": runs,
    "state": shown.state,
    "last": json.loads(events.rpartition("data:")[2])["event"],
    "missing": told(runs_show.sync("a/b", client=client)),
    "refused": told(runs_submit.sync(client=client, body=wrong)),
}
sys.stdout.write(json.dumps(answers))
