"""Language models that are held up in the middle of their work, until a test lets them continue."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.prompts import Prompt

DEADLINE = 60


class HeldUp:
    """A method whose callers are held up; `begun` is set once one is, and they continue when `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        method = getattr(owner, name)

        def held_up(*args: Any) -> Any:
            self.begun.set()
            assert self.go_on.wait(DEADLINE)
            return method(*args)

        monkeypatch.setattr(owner, name, held_up)


def is_cut_off_alone(
    monkeypatch: pytest.MonkeyPatch, model: LanguageModel, prompts: Sequence[Prompt], owner: type, name: str
) -> None:
    """Asserts that a prompt cut off while the engine is held up ends, and the others write their usual texts."""
    cancellation = Cancellation()
    before = [model.generate(GenerationRequest(prompt, "line", 8)).raw for prompt in prompts]
    held = HeldUp(monkeypatch, owner, name)
    with ThreadPoolExecutor(8) as pool:
        cut = pool.submit(model.generate, GenerationRequest(prompts[0], "line", 200), cancellation)
        assert held.begun.wait(DEADLINE)
        others = [pool.submit(model.generate, GenerationRequest(prompt, "line", 8)) for prompt in prompts]
        waiting = pool.submit(model.generate, GenerationRequest(prompts[0], "line", 200), cancellation)
        cancellation.cancel()
        held.go_on.set()
        assert [type(future.exception(DEADLINE)) for future in (cut, waiting)] == [Interrupted, Interrupted]
        assert [other.result(DEADLINE).raw for other in others] == before
