"""Records the histories that a new version of a system needs: `python -m tests.replay.recording SYSTEM`.

Question, demonstrations and pins are those of IRCoT's history. The world is made up: searches find paragraphs named for
the query's words, scores are pseudo-random, and the model states the same answer to every prompt, or in a conversation
the next of `MESSAGES`; what it reads from a paragraph is the title, but once an answer that doesn't stand there. Two
new files are written: a record that leads to the answer, and one whose last step the code departs from. Read both
before you commit them.
"""

import sys
from pathlib import Path
from typing import cast

import msgspec
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.history import Next, Outcome, Recorded
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.replay import advance
from cotrail.core.system import Action
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.systems.registry import find_system
from tests.replay.driving import MadeUp
from tests.replay.test_histories import History, StoredStep, history

FOLDER = Path(__file__).parent / "histories"
MESSAGES = (
    "[Query 1]: Which fish is salted?\n[Answer 1]: Sild is salted.\n[Unsolved Query]: Who catches sild?",
    "[Query 1]: Who catches sild?\n[Answer 1]: Sild.\n[Query 2]: Where is it sold?\n[Answer 2]: In Bergen.",
    "[Query 1]: Which town sells sild?\n[Answer 1]: Bergen sells sild.\n[Final Content]: So the answer is Sild.",
    "[Final Content]: Sild is salted [1], and sold in Bergen [3]. So the answer is Sild.",
)
"""What the model writes in the turns of a conversation."""

SEARCHES = MadeUp(cast(LanguageModel, None))  # asked for everything but texts


def world(action: Action) -> Outcome:
    if isinstance(action, Prompted):
        text = "Sild" if action.until == "line" else "So the answer is: Sild."
        if action.scored and "salted" not in action.prompt.question:
            text = action.prompt.paragraphs[0].title
        if action.until == "stop":
            text = MESSAGES[sum(turn.role == "assistant" for turn in action.prompt.turns) % len(MESSAGES)]
        written = generated(action.prompt, text, text, TokenCounts(prompt=1, cached=0, generated=1))
        return replace(written, tokens=((text, -0.01),)) if action.scored else written
    return SEARCHES(action)


def record(system: str) -> tuple[History, History]:
    """The history of a system's newest version by its default settings, and the same one spoiled."""
    spec, like = find_system(system), history("ircot_v2_answered")
    settings = spec.spelled_out(spec.settings())
    needed = spec.needs(settings)
    shots = {form: like.demonstrations[form] for form in sorted(needed.forms)} | dict(needed.brought)
    records: list[Recorded] = []
    while isinstance(
        following := advance(lambda: spec.open(like.question, shots, settings), records, like.binding), Next
    ):
        records += (
            Recorded(kind=kind_of(step.action).name, fingerprint=step.fingerprint, outcome=world(step.action))
            for step in following.steps
        )
    steps = [
        StoredStep(kind=each.kind, fingerprint=each.fingerprint, outcome=msgspec.to_builtins(each.outcome))
        for each in records
    ]
    whole = replace(
        like,
        shows="an answer in a made-up world",
        system=spec.name,
        version=spec.version,
        settings=msgspec.to_builtins(settings),
        demonstrations=shots,
        history=steps,
    )
    bad = replace(
        whole, shows="another input of the last step", history=[*steps[:-1], replace(steps[-1], fingerprint="0" * 64)]
    )
    return replace(whole, expected=whole.follow()), replace(bad, expected=bad.follow())


def write(made: History, name: str) -> None:
    path = FOLDER / f"{made.system}_v{made.version}_{name}.json"
    with path.open("xb") as file:  # never over a record of what the system once did
        file.write(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    answered, spoiled = record(sys.argv[1])
    write(answered, "answered")
    write(spoiled, "bad_input")
