"""The settings of prompts for the tasks of Rethinking with Retrieval (sections 4.1 and A.1)."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.core.demonstrations import Layout
from cotrail.core.generation import Until
from cotrail.faithfulness.tasks import ChainRules, Task
from cotrail.systems.parts.prompting import PromptSettings

LAYOUTS: dict[Task, Layout] = {"commonsense": "qa", "temporal": "qa", "tabular": "entailment"}
"""The layout of each task's prompts (Rethinking with Retrieval, appendix A.1)."""


class TaskSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prompts for the questions of a task, and the reading of what the model writes."""

    task: Task = "commonsense"
    """The form of questions and predictions: yes or no, a text, or true or false."""

    prompting: PromptSettings = PromptSettings()
    layout: Layout | None = None
    """How prompts are laid out; the task's own unless given."""

    until: Until = "chain"
    """Where a text ends: behind a sentence, at the line's end, before a further demonstration (`chain`), or where
    the model ends it. The paper's chains end where the model ends them or begins a further demonstration."""

    chain_rules: ChainRules = "paper"
    """The rules by which chains are read and weighed: the paper's, those of the released code, or those of the
    first versions of the systems (`words`)."""

    @property
    def prompt_layout(self) -> Layout:
        """The layout of prompts."""
        return self.layout or LAYOUTS[self.task]


class BaselineSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt without any knowledge source, answered once (Rethinking with Retrieval, sections 4.1 and 4.5)."""

    max_tokens: Positive = 256
    """The most tokens that the model writes."""


class SampledSettings(TaskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several chains of thought (Wang et al., 2022), sampled as in Rethinking with Retrieval, section 4.5."""

    chains: Positive | None = None
    """The number of chains; 10 unless given, and 9 for yes or no."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.7
    """The temperature at which chains are sampled."""

    max_chain_tokens: Positive = 256
    """The most tokens of a chain."""

    @property
    def chain_count(self) -> int:
        """The number of chains that are sampled."""
        return self.chains or (9 if self.task == "commonsense" else 10)


DEFAULTS_1: dict[str, Any] = {"layout": "ircot", "until": "line", "chain_rules": "words"}
"""Defaults of version 1 of the systems with these settings: every prompt in IRCoT's layout, and texts of one line."""
