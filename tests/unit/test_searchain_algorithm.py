"""Algorithm 1 of Search-in-the-Chain, written down once more for chains of a few queries, and the system beside it."""

import math
from collections.abc import Sequence
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from cotrail.core.actions.generate import Read
from cotrail.core.questions import Paragraph
from cotrail.core.results import Result
from cotrail.core.system import Action
from cotrail.evaluation.experiments.searchain.runs import Searched, Sources, is_helped, nodes_by_hops, sources
from tests.unit.test_searchain import World, queries, run, tree, wrote

NAMES = "bcdefg"  # not "a", which is an article and so no word once normalized
THETA = 1.5


class Asked(Struct, frozen=True):
    """A query of a chain: which of `NAMES` it asks for, the model's answer, and whether it is unsolved."""

    name: str
    answer: str
    unsolved: bool

    @property
    def query(self) -> str:
        return f"Who is {self.name}?"


class Known(Struct, frozen=True):
    """What there is on a name: whether a document, what the reader says, and its confidence."""

    document: bool
    said: str
    logit: float


class Step(Struct, frozen=True):
    """A node that was looked at, as it should be recorded."""

    number: int
    query: str
    accepted: str
    source: str | None


class Expected(Struct):
    """R by query, the queries that were searched for, and how many chains were written."""

    path: dict[str, Step]
    searched: list[str]
    rounds: int = 0


def algorithm_1(
    chains: Sequence[Sequence[Asked]], known: dict[str, Known], most: int, *, verify: bool, complete: bool
) -> Expected:
    done = Expected({}, [])
    number = 0
    for chain in chains[:most]:
        done.rounds += 1
        fed_back = False
        for place, asked in enumerate(chain):
            if fed_back or (asked.unsolved and not complete):
                continue
            if not asked.unsolved and asked.query in done.path:
                continue
            done.searched.append(asked.query)
            step = looked_up(asked, number + place, known[asked.name], verify=verify)
            done.path[asked.query] = step
            fed_back = asked.unsolved or step.source == "corrected"
        number += len(chain)
        if not fed_back:
            break
    return done


def looked_up(asked: Asked, number: int, on: Known, *, verify: bool) -> Step:
    said = on.said if on.document and on.said == f"{asked.name} one" else ""
    if asked.unsolved:
        return Step(number, asked.query, said if on.document else "", "completed" if on.document else None)
    if verify and said and on.logit > THETA and said not in asked.answer:
        return Step(number, asked.query, said, "corrected")
    return Step(number, asked.query, asked.answer, "model")


class Small(World):
    """Reads what is known of a name, each as sure as it is."""

    def __init__(self, *messages: str, known: dict[str, Known]) -> None:
        documents = {
            f"Who is {name}?": Paragraph(id=name, title=f"On {name}", text=f"It is {name} one.")
            for name, on in known.items()
            if on.document
        }
        super().__init__(*messages, documents=documents)
        self.known = known

    def __call__(self, action: Action) -> Result:
        if isinstance(action, Read):
            on = self.known[action.prompt.question[-2]]
            return wrote(on.said or "unanswerable", tokens=(("x", -math.log1p(math.exp(-on.logit))),))
        return super().__call__(action)


def message(chain: Sequence[Asked]) -> str:
    lines = []
    for number, asked in enumerate(chain, start=1):
        if asked.unsolved:
            lines.append(f"[Unsolved Query]: {asked.query}")
        else:
            lines.append(f"[Query {number}]: {asked.query}")
            lines += [f"[Answer {number}]: {asked.answer}"] if asked.answer else []
    return "\n".join(lines) or "Nothing."


def is_flag(one: Asked, following: Asked) -> bool:
    """Whether the second is no query of its own, and only says that the first is unsolved."""
    return following.unsolved and not one.unsolved and not one.answer and one.name == following.name


CHAINS = st.lists(
    st.lists(
        st.builds(
            Asked, st.sampled_from(NAMES), st.sampled_from(["", "me", "c one", "it is b one"]), st.just(value=False)
        )
        | st.builds(Asked, st.sampled_from(NAMES), st.just(""), st.just(value=True)),
        max_size=5,
    ).filter(lambda chain: not any(map(is_flag, chain, chain[1:]))),
    min_size=1,
    max_size=7,
)
KNOWN = st.fixed_dictionaries(
    {
        name: st.builds(
            Known,
            st.booleans(),
            st.sampled_from(["", f"{name} one", "made up"]),
            st.sampled_from([-3.0, 1.0, 2.0, 5.0]),
        )
        for name in NAMES
    }
)


@settings(deadline=None, max_examples=200)
@given(
    chains=CHAINS,
    known=KNOWN,
    most=st.integers(1, 6),
    verify=st.booleans(),
    complete=st.booleans(),
    ahead=st.booleans(),
)
def test_the_system_does_what_the_algorithm_says(
    chains: list[list[Asked]], known: dict[str, Known], most: int, *, verify: bool, complete: bool, ahead: bool
) -> None:
    # The last message is written again and again, so that no more chains are compared than there are.
    most = min(most, len(chains))
    world = Small(*map(message, chains), known=known)
    trace, answer = run(world, rounds=most, verify=verify, complete=complete, ahead=ahead)
    done, expected = tree(answer), algorithm_1(chains, known, most, verify=verify, complete=complete)
    found = [Step(n.number, n.query, n.accepted, n.source) for n in map(done.nodes.__getitem__, done.path)]
    assert found == list(expected.path.values())
    assert done.rounds == expected.rounds
    if not ahead:
        assert queries(trace) == expected.searched
    counted = [step.source for step in expected.path.values()]
    assert sources([done]) == Sources(
        model=counted.count("model"), corrected=counted.count("corrected"), completed=counted.count("completed")
    )
    assert is_helped(done) == (not {"corrected", "completed"}.isdisjoint(counted))
    rounds = [len(list(nodes)) for _, nodes in groupby(done.nodes, lambda node: node.round)]
    assert rounds == [len(chain) for chain in chains[: done.rounds] if chain]


@given(chain=CHAINS.map(lambda chains: chains[0]), known=KNOWN)
def test_without_retrieval_every_query_is_a_node_and_none_is_on_the_path(
    chain: list[Asked], known: dict[str, Known]
) -> None:
    _, answer = run(Small(message(chain), known=known), retrieve=False)
    assert [node.query for node in tree(answer).nodes] == [asked.query for asked in chain]
    assert tree(answer).path == ()
    asked = Searched(key="q", score=1.0, hops=2, tree=tree(answer))
    assert nodes_by_hops([asked]) == {2: len(chain)}
