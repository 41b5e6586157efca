"""What all experiment files have."""

from collections.abc import Mapping
from functools import reduce
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from cotrail.common.trees import merged
from cotrail.common.unusual_fields import unusual
from cotrail.core.budgets import NO_BUDGET, Budget
from cotrail.core.ports.language_model import Profile, Serving
from cotrail.systems.parts.rules import Rules

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
ExperimentName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=200,
        description="a name of letters, digits, dots, dashes and underscores (200 at most)",
        examples=["main-results"],
    ),
]


class Experiment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="protocol"):
    """Everything that determines the runs and their results; a paper adds what it varies, and its `datasets`.

    models: those of `models.toml`; the default model if there are none.
    settings: further settings of systems, by the system's name.
    question_budget, run_budget: the most that a question of a run may take, and each run. serving: of every run.
    """

    name: ExperimentName
    models: tuple[Any, ...] = ()
    rules: Rules = "paper"
    seed: Whole = 0
    profile: Profile = "deterministic"
    settings: dict[str, dict[str, Any]] = {}
    question_budget: Budget = NO_BUDGET
    run_budget: Budget = NO_BUDGET
    serving: Serving = "live"

    @property
    def protocol(self) -> str:
        """The paper that it follows, as files name it."""
        return str(self.__struct_config__.tag)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models, in the order of the file."""
        return self.models

    def request(self, system: str, *settings: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
        """A run's request: these keys, and those that the file gives to every run.

        settings: of the run, over the file's; later ones win.
        """
        shared: dict[str, Any] = {"rules": self.rules, "seed": self.seed, "profile": self.profile}
        later = unusual(self, "question_budget", "run_budget", "serving")
        shared |= {name: to_builtins(each) for name, each in later.items()}
        return {"system": system, **shared, "settings": reduce(merged, settings, self.settings.get(system, {})), **keys}
