"""Named sets of rules: where the authors' released code departs from the paper (docs/deviations.md)."""

from typing import Any, Literal, Protocol

Rules = Literal["paper", "released"]
"""`paper`, or what the authors' `released` code does; single rules are set by hand in a system's settings."""


class Released(Protocol):
    """The settings of a system that make it follow its authors' released code."""

    def __call__(self, *, instructed: bool) -> dict[str, Any]:
        """Settings that differ from the defaults.

        instructed: whether the demonstrations have an instruction before the question, as for Flan-T5.
        """


def as_the_paper(*, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """No settings: there is no released code, or it departs from the paper nowhere."""
    return {}


def released_reading(*, instructed: bool) -> dict[str, Any]:
    """The settings by which a reader and its prompts follow the released code of IRCoT."""
    # Flan-T5's context has no fixed limit in the released code, which therefore drops no demonstrations as it loads
    # them; and the passage that a question of IIRC pins is last, as in its demonstrations.
    tokens = released_tokens(instructed=instructed)
    return {
        "reading": {
            "instruction": "released",
            "answers": "released",
            "max_answer_tokens": tokens,
            "max_chain_tokens": tokens,
        },
        "prompting": {
            "drop": "first" if instructed else "released",
            "pinned": "bottom" if instructed else "top",
        },
    }


def released_retrieval(*, instructed: bool) -> dict[str, Any]:
    """The settings by which searches follow the released code of IRCoT."""
    return {
        "retrieval": {"duplicates": "released", "distinct_texts": True, "pinned": "released"},
        "pages": {"scope": "after", "found": "released", "max_tokens": released_tokens(instructed=instructed)},
    }


def released_tokens(*, instructed: bool) -> int:
    """The most tokens that a step of the released code of IRCoT writes.

    Flan-T5 writes at most 200 at every step (`max_length` in `base_configs`) and GPT-3 300 (`gpt3generator.py`).
    """
    return 200 if instructed else 300


def released_chains(*, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """The settings by which chains are read and weighed as in the released code of Rethinking with Retrieval."""
    return {"chain_rules": "released", "until": "end"}
