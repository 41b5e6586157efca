"""An environment (`cotrail.Environment`) in the interface of OpenEnv: a server for OpenEnv's clients and trainers.

In a module of one's own `app = cotrail.openenv.app(cotrail.Environment(...))`, which `uvicorn module:app` serves.
"""

from typing import Any

import msgspec
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment as OpenEnvironment
from openenv.core.env_server.types import Action, Observation, State

MOST_EPISODES = 1_000
"""Episodes that may be under way at once."""


class Written(Action):  # type: ignore[misc]
    """What the model wrote, and its calls of tools, as messages of a chat have them."""

    text: str
    calls: tuple[dict[str, Any], ...] = ()


class Shown(Observation):  # type: ignore[misc]
    """What it is shown next; see `cotrail.environment.Observation`."""

    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    max_tokens: int = 0
    continues: bool = False
    answer: str = ""


class System(OpenEnvironment):  # type: ignore[misc]
    """The episodes of one client, one after another."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, environment: Any) -> None:
        super().__init__()
        self._environment = environment
        self._episode: Any = None
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **fields: Any) -> Shown:  # noqa: ARG002
        """Begin an episode; seed: the place of its question, modulo their number."""
        self._episode = self._environment.episode((seed or 0) % len(self._environment))
        self._state = State(episode_id=episode_id)
        return _shown(self._episode)

    def step(self, action: Written, timeout_s: float | None = None, **fields: Any) -> Shown:  # noqa: ARG002
        """Carry on with what the model wrote."""
        if self._episode is None:
            return self.reset()
        self._episode.act(action.text, action.calls)
        self._state.step_count += 1
        return _shown(self._episode)

    @property
    def state(self) -> State:
        """Which episode it is, and how many steps it has had."""
        return self._state


def _shown(episode: Any) -> Shown:
    return Shown(**msgspec.to_builtins(episode.seen))


def app(environment: Any) -> Any:
    """Of a `cotrail.Environment` the server's application (ASGI), in which each client has episodes of its own."""
    return create_app(
        lambda: System(environment), Written, Shown, env_name="cotrail", max_concurrent_envs=MOST_EPISODES
    )
