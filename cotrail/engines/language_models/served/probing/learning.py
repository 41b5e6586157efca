"""From what a model's table says to what it answers, a small request at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cotrail.core.generation import Sampling
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Api, Endpoint
from cotrail.engines.language_models.providers import THOUGHT_TOKENS
from cotrail.engines.language_models.served.probing.abilities import Ability, abilities, asked
from cotrail.engines.language_models.served.probing.blamed_fields import Field
from cotrail.engines.language_models.served.probing.findings import Findings, limits_in_words, usage_in_words
from cotrail.engines.language_models.served.probing.fitting import Fitted, fit
from cotrail.engines.language_models.served.probing.probe import Probe
from cotrail.engines.language_models.served.probing.thought_place import (
    ThoughtPlace,
    can_think,
    looking,
    thought_place,
)
from cotrail.errors import InputError

QUESTION = "A train leaves at 9:40 and arrives 135 minutes later. When does it arrive? Answer with the time alone."
"""What takes a model a thought, and a text of a few tokens."""

TOKENS = 256
"""The most tokens of its answer."""

SAMPLED = Sampling(temperature=0.7, top_p=0.9, seed=1)

_ELSEWHERE: tuple[Api, ...] = ("chat", "responses", "anthropic", "completions")


def learn(name: str, endpoint: Endpoint, apis: Sequence[Api], tell: Callable[[str], None]) -> Findings:
    """What the model behind an endpoint takes.

    apis: those to try, in their order. tell: takes a line on each request.
    Raises InputError where nothing answers, the key is refused, or the account is used up.
    """
    probe = Probe(name, tell)
    found = _answering(probe, endpoint, apis)
    place = _place(probe, endpoint, found)
    found = _sampled(probe, _thinking(probe, found, place))
    can = abilities(probe, found.endpoint, found.outcome.dialect)
    notes = [usage_in_words(probe.usage), limits_in_words(probe.limits), *_on_demand(probe, endpoint, found)]
    if "effort" in found.reasons:
        notes.append(f"It refuses the effort {endpoint.effort}: {found.reasons['effort']}")
    return Findings(
        settings=_settings(endpoint, found, place, can),
        reasons=_reasons(found, place, can),
        requests=probe.requests,
        usage=probe.usage,
        notes=tuple(filter(None, notes)),
    )


def apis_to_try(endpoint: Endpoint, *, named: bool) -> tuple[Api, ...]:
    """The APIs that may be at an address; named: whether the table names its API, which is then tried first."""
    if endpoint.api == "gemini":
        return ("gemini",)
    return tuple(dict.fromkeys((*((endpoint.api,) if named else ()), *_ELSEWHERE)))


def _answering(probe: Probe, endpoint: Endpoint, apis: Sequence[Api]) -> Fitted:
    """The first API that answers, and what it refuses."""
    failures = []
    for api in apis:
        table = looking(_plain(endpoint, api))
        request = GenerationRequest(asked(table, QUESTION), "chain", _room(table, TOKENS))
        found = fit(probe, f"the API {api}", table, request)
        if found.outcome.result is not None:
            return found
        failures.append(f"{api}: {found.outcome.why}")
    raise InputError(f"{endpoint.url} answers no request to {endpoint.model} ({'; '.join(failures)})")


def _plain(endpoint: Endpoint, api: Api) -> Endpoint:
    """The table with what is to be learned left out."""
    changed = replace(endpoint, without=(), omits=(), continues=None)
    if api == endpoint.api:
        return changed
    renamed = replace(changed, chat_template=None, bos="", eos="", limit_field="")
    return replace(renamed, api=api)


def _place(probe: Probe, given: Endpoint, found: Fitted) -> ThoughtPlace:
    if found.outcome.result is None:
        raise InputError(found.outcome.problem)
    request = GenerationRequest(asked(found.endpoint, QUESTION), "stop", _room(found.endpoint, TOKENS))
    seen = thought_place(probe, found.endpoint, request, found.outcome.result)
    if given.thinks and given.thinking.may_think and seen.thinks == "no":
        return ThoughtPlace(thinks=given.thinks, why=f"given; in the answer to this question, {seen.why}")
    return seen


def _thinking(probe: Probe, found: Fitted, place: ThoughtPlace) -> Fitted:
    """The table with its place of thoughts, and what a request refuses that is made for them, or for none."""
    before = found.endpoint
    endpoint = replace(before, thinks=place.thinks, thought_tokens=0)
    if endpoint.thinking.may_think:
        tokens = min(endpoint.context // 4, 2 * LEAST_BUDGET)
        least = LEAST_BUDGET if endpoint.api == "anthropic" else 0
        endpoint = replace(endpoint, thought_tokens=max(tokens, least))
    if endpoint.thinking.may_think == before.thinking.may_think:
        return replace(found, endpoint=endpoint)
    request = GenerationRequest(asked(endpoint, QUESTION), "chain", _room(endpoint, TOKENS))
    again = fit(probe, f'thinks = "{place.thinks}"', endpoint, request)
    return _joined(found, again) if again.outcome.result is not None else replace(found, endpoint=endpoint)


def _sampled(probe: Probe, found: Fitted) -> Fitted:
    """The table without what a request refuses that isn't greedy."""
    if {"temperature", "top_p", "seed"} <= {*found.endpoint.omits}:
        return found
    request = GenerationRequest(asked(found.endpoint, QUESTION), "chain", _room(found.endpoint, TOKENS), SAMPLED)
    again = fit(probe, "sampling", found.endpoint, request)
    return _joined(found, again) if again.outcome.result is not None else found


def _joined(before: Fitted, again: Fitted) -> Fitted:
    return Fitted(endpoint=again.endpoint, outcome=again.outcome, reasons={**before.reasons, **again.reasons})


def _on_demand(probe: Probe, given: Endpoint, found: Fitted) -> list[str]:
    """That a model of Anthropic's can be told to think."""
    endpoint = found.endpoint
    if endpoint.api != "anthropic" or endpoint.thinking.may_think or given.thinks == "no":
        return []
    request = GenerationRequest(asked(endpoint, QUESTION), "chain", _room(endpoint, TOKENS))
    setting = can_think(probe, endpoint, request)
    return [f"It thinks where its table asks for it: {setting}."] if setting else []


def _room(endpoint: Endpoint, tokens: int) -> int:
    """The most tokens of a text, which a short context may not have."""
    return min(tokens, endpoint.context // 4)


def _settings(given: Endpoint, found: Fitted, place: ThoughtPlace, can: Sequence[Ability]) -> Mapping[str, Any]:
    endpoint = found.endpoint
    thinks = endpoint.thinking.may_think
    own = given.thought_tokens or min(THOUGHT_TOKENS, given.context // 2)
    of_the_former = {"chat_template": None, "bos": None, "eos": None} if endpoint.api != given.api else {}
    return {
        "api": endpoint.api,
        **of_the_former,
        "continues": next((each.continues for each in can if each.continues), None),
        "without": [each.without for each in can if each.without] or None,
        "thinks": place.thinks,
        "thought_tokens": own if thinks else None,
        "effort": endpoint.effort or None,
        "limit_field": endpoint.limit_field or None,
        "omits": [*endpoint.omits, *(each.omits for each in can if each.omits)] or None,
    }


def _reasons(found: Fitted, place: ThoughtPlace, can: Sequence[Ability]) -> Mapping[str, Sequence[str]]:
    refused: dict[Field, str] = {**found.reasons, **{each.omits: each.why for each in can if each.omits}}
    reasons: dict[str, Sequence[str]] = {
        "api": ["it answers"],
        "continues": [each.why for each in can if each.continues],
        "without": [f"{each.without}: {each.why}" for each in can if each.without],
        "thinks": [place.why],
        "thought_tokens": ["the most tokens of a thought, besides those of each step's text"],
        "omits": [f"{field}: {why}" for field, why in refused.items() if field not in ("limit", "effort")],
    }
    return reasons | ({"limit_field": [refused["limit"]]} if "limit" in refused else {})
