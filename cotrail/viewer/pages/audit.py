"""The audit trail of a run: what is sealed, whether it verifies, and the bundle for others to check."""

from typing import Annotated

from msgspec import Meta

from cotrail.services.results import auditing
from cotrail.viewer.links import link
from cotrail.viewer.page import Shown, page

Digest = Annotated[str, Meta(max_length=200)]

MOST_VERIFIED = 500
"""The most questions of a run that is verified while somebody waits for the page: some 10 ms each."""

MOST_FINDINGS = 100
"""The most findings that are shown; `cotrail audit verify --json` has all."""


@page("/runs/{run}/audit")
def show(run: str, digest: Digest = "", plan: Digest = "", *, verify: bool = False) -> Shown:
    """The seals of a run; verify: with all digests computed again, and compared with those that were noted down."""
    seals = auditing.show_seals(run)
    small = seals.questions <= MOST_VERIFIED
    found = auditing.verify_run(seals.run, digest=digest or None, plan=plan or None) if verify and small else None
    values = {
        "seals": seals,
        "digest": digest,
        "plan": plan,
        "small": small,
        "most": MOST_VERIFIED,
        "verified": found,
        "findings": found.findings[:MOST_FINDINGS] if found else (),
    }
    is_open = seals.digest is None and found is None
    events = link("v1", "runs", seals.run, "events") if is_open else ""
    return Shown(template="audit.html", section="runs", values=values, events=events)
