"""Records the histories that a new version of a system needs: `python -m tests.replay.recording SYSTEM`.

Question, demonstrations and pins are those of IRCoT's history. The world is made up: searches find paragraphs named for
the query's words, and scores are pseudo-random. What the model writes, call by call, is a line of `LINES`, which should
lead through all that the system does. Without one it states the same answer to every prompt, or in a conversation the
next of `MESSAGES`; what it reads from a paragraph is the title, but once an answer that doesn't stand there. Two new
files are written: a record that leads to the answer, and one whose last step the code departs from. Read both before
you commit them.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Next, Outcome, Recorded
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.questions import JudgedAnswer
from cotrail.core.replay import advance
from cotrail.core.results import Retrieved
from cotrail.core.system import Action
from cotrail.engines.language_models.result import generated
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.systems.registry import find_system
from tests.replay.driving import MadeUp, World
from tests.replay.test_histories import History, StoredStep, history
from tests.told import Line, ToldModel

FOLDER = Path(__file__).parent / "histories"

SEARCH = '<tool_call>{"name": "search", "arguments": {"query": "salted fish"}}</tool_call>'
SEARCHES_AND_OPENS = f'{SEARCH}<tool_call>{{"name": "open", "arguments": {{"title": "Sild"}}}}</tool_call>'
RESEARCH = '<tool_call>{"name": "research", "arguments": {"topic": "salted fish"}}</tool_call>'
TAGGED = "<search> salted fish </search>"
REACT = (
    "Fish first.\nAction 1: Search[Sild]",
    "Salted?\nAction 2: Lookup[sild]",
    "Hm.",
    "think[Salt]",
    "I know.\nAction 4: Finish[Sild]",
)
LINES: Mapping[str, Sequence[Line]] = {
    "self-ask": (" Yes.\nFollow up: Which fish is salted?", "\nSo the final answer is: Sild."),
    "dsp": (
        *[" which fish is salted.\nSearch Query: salted fish"] * 10,
        *[" sild is salted.\nSearch Query: sild"] * 10,
        *[" It is sild.\nAnswer: Sild"] * 20,
    ),
    "react": REACT,
    "react-self-consistency": (*REACT[:-1], *["Hm.", "think[Hm.]"] * 4, *["It is.\nAnswer: Sild"] * 21),
    "self-consistency-react": (*["Hm."] * 21, *REACT),
    "verify-and-edit": (
        *[f" First, fish {number} is salted. The answer is {number}." for number in range(5)],
        "Which fish is salted?",
        "Sild is salted.",
        "Sild.",
    ),
    "toolformer": (' It is [Search("salted \\"fish\\"")] →', "So the answer is: Sild."),
    "recite": (*["Answer 1: Sild is salted."] * 10, *[""] * 10, *["Sild"] * 20),
    "search-r1": (TAGGED, "Hm.", "<answer> Sild </answer>"),
    "zerosearch": (TAGGED, "Hm.", "<answer> Sild </answer>"),
    "research": (TAGGED, "Hm. </search>", "<answer> \\boxed{Sild} </answer>"),
    "r1-searcher": ("Fish.<|begin_of_query|> 'salted'\tfish...<|end_of_query|>", "</think><answer> Sild </answer>"),
    "search-o1": (
        "<|begin_search_query|>salted fish<|end_search_query|>",
        "**Final Information**\nSild is salted.",
        "It is \\boxed{Sild}.",
    ),
    "webthinker": (
        "<|begin_search_query|>salted fish<|end_search_query|>",
        "<|begin_click_link|>Sild<|end_click_link|>",
        "**Final Information**\nSild is salted.",
        "It is \\boxed{Sild}.",
    ),
    "tool-agent": (SEARCHES_AND_OPENS, "Answer: Sild"),
    "recall": (f"{SEARCH}{SEARCH}", "\\boxed{Sild}"),
    "tongyi-deepresearch": (
        SEARCH,
        '<tool_call>{"name": "visit", "arguments": {"title": "Sild", "goal": "its salt"}}</tool_call>',
        "Sild is salted.",
        "<answer>Sild</answer>",
    ),
    "deep-research": (
        "Which fish?",
        RESEARCH * 2,
        SEARCH,
        "Found.",
        "Found.",
        "Sild.",
        "Sild.",
        "Enough.",
        "Answer: Sild",
    ),
    "flare": (("Mackerel is salted.", 0.6), ("Sild is salted.", 0.7), ("So the answer is: Sild.", 0.99)),
    "iter-retgen": ("Mackerel is salted. So the answer is: Mackerel.", "Sild is salted. So the answer is: Sild."),
    "corag": (
        *('"Which fish is salted?"', "Sild.", "Which fish is salted?", "Intermediate query 2: Who sells it?"),
        *("Bergen.", "Who eats sild?", "Bergen.", "Where is sild sold?", "In Bergen.", "Is sild a fish?", "Yes."),
        *("Is Bergen a town?", "No relevant information found", "Sild"),
    ),
    "probtree": (
        ('{"Which river is it?": ["Where is the engineer from?", "Which river runs through <1>?"]}', 0.8),
        *(("It is Brask. So the answer is: Grayle.", 0.6), "Brask is from Tarn. So the answer is: Tarn."),
        *("So the answer is: Unknown", "Tarn is on it. So the answer is: Sild."),
        *(("Brask. So the answer is: Vell.", 0.5), "Tarn is on it. So the answer is: Sild.", "It is the Sild."),
    ),
    "judge": ('{"reasoning": "The sild is sild.", "verdict": "correct", "confidence": 90}',),
}
"""What the model writes for a system's question, a text a call; see `tests.told.Line`."""

GRADED = JudgedAnswer(run="ircot-20261125-0a1b2c", digest="0" * 64, answer="It is the sild.")
"""The answer that a judge grades."""

MESSAGES = (
    "[Query 1]: Which fish is salted?\n[Answer 1]: Sild is salted.\n[Unsolved Query]: Who catches sild?",
    "[Query 1]: Who catches sild?\n[Answer 1]: Sild.\n[Query 2]: Where is it sold?\n[Answer 2]: In Bergen.",
    "[Query 1]: Which town sells sild?\n[Answer 1]: Bergen sells sild.\n[Final Content]: So the answer is Sild.",
    "[Final Content]: Sild is salted [1], and sold in Bergen [3]. So the answer is Sild.",
)
"""What the model writes in the turns of a conversation."""

SEARCHES = MadeUp(cast(LanguageModel, None))  # asked for everything but texts


def world_of(system: str) -> World:
    if system not in LINES:
        return world
    made_up = MadeUp(ToldModel(LINES[system]))
    return lambda action: best(action, made_up(action))


def best(action: Action, outcome: Outcome) -> Outcome:
    """No more than a search asked for."""
    if not isinstance(action, Retrieve) or not isinstance(outcome, Retrieved):
        return outcome
    return replace(outcome, hits=outcome.hits[: action.count])


def world(action: Action) -> Outcome:
    if isinstance(action, Prompted):
        text = "Sild" if action.until == "line" else "So the answer is: Sild."
        if action.scored and "salted" not in action.prompt.question:
            text = action.prompt.paragraphs[0].title
        if action.until == "stop":
            text = MESSAGES[sum(turn.role == "assistant" for turn in action.prompt.turns) % len(MESSAGES)]
        written = generated(action.prompt, text, text, TokenCounts(1, 0, 1))
        return replace(written, tokens=((text, -0.01),)) if action.scored else written
    return SEARCHES(action)


def record(system: str) -> tuple[History, History]:
    """The history of a system's newest version by its default settings, and the same one spoiled."""
    spec, like = find_system(system), history("ircot_v1_answered")
    if spec.judges:
        like = replace(like, question=replace(like.question, answers=("Sild",), judged=(GRADED,)))
    settings = spec.spelled_out(spec.settings())
    needed = spec.needs(settings)
    shots = {form: like.demonstrations[form] for form in sorted(needed.forms)} | dict(needed.brought)
    records: list[Recorded] = []
    outcome_of = world_of(system)
    while isinstance(
        following := advance(lambda: spec.open(like.question, shots, settings), records, like.binding), Next
    ):
        records += (
            Recorded(kind=kind_of(step.action).name, fingerprint=step.fingerprint, outcome=outcome_of(step.action))
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
