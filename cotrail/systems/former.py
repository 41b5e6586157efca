"""What former versions of systems did where later ones do otherwise.

A run of theirs has nothing of the settings that came later. Here these have the values by which the systems do what
they did.
"""

from typing import Literal

from cotrail.core.auxiliary_questions import OPENING
from cotrail.core.generation import Until
from cotrail.core.prompts import Layout
from cotrail.faithfulness.rules import ChainRules
from cotrail.systems.settings import (
    BaselineSettings,
    EvidenceScope,
    IRCoTSettings,
    OneStepSettings,
    PageSettings,
    PinnedCopy,
    RethinkingSettings,
    RetrievalSettings,
    SelfConsistencySettings,
    ZeroShotSettings,
)


class RetrievalSettings1(RetrievalSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1: a pinned passage could be collected again."""

    pinned: PinnedCopy = "again"


class PageSettings1(PageSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1: titles beyond those asked for were dropped."""

    titles: Literal["all", "asked"] = "asked"


class IRCoTSettings1(IRCoTSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1, as above."""

    retrieval: RetrievalSettings1 = RetrievalSettings1()
    pages: PageSettings1 = PageSettings1()


class OneStepSettings1(OneStepSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1, as above."""

    retrieval: RetrievalSettings1 = RetrievalSettings1(retrieval_count=15)
    pages: PageSettings1 = PageSettings1()


class BaselineSettings1(BaselineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1: every prompt in IRCoT's layout, and texts of a line."""

    layout: Layout | None = "ircot"
    until: Until = "line"
    chain_rules: ChainRules = "words"


class ZeroShotSettings1(ZeroShotSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1: one opening for all tasks too."""

    layout: Layout | None = "ircot"
    until: Until = "line"
    chain_rules: ChainRules = "words"
    opening: str | None = OPENING


class SelfConsistencySettings1(SelfConsistencySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1, as above."""

    layout: Layout | None = "ircot"
    until: Until = "line"
    chain_rules: ChainRules = "words"


class RethinkingSettings1(RethinkingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Version 1, as above; evidence is looked for in whole pages."""

    layout: Layout | None = "ircot"
    until: Until = "line"
    chain_rules: ChainRules = "words"
    evidence: EvidenceScope = "pages"
