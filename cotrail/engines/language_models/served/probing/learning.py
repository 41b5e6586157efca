"""From what a model's table says to what it answers, a small request at a time.
What was learned becomes settings of the model's table, with their reasons.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import tomli_w
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import cut
from cotrail.core.generation import Sampling
from cotrail.core.money import Usage
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.rate_limiter import DIMENSIONS, Limits
from cotrail.engines.language_models.endpoint import LEAST_BUDGET, Api, Endpoint
from cotrail.engines.language_models.providers import THOUGHT_TOKENS
from cotrail.engines.language_models.served.client import ServerClient
from cotrail.engines.language_models.served.probing.abilities import (
    Ability,
    ThoughtPlace,
    abilities,
    asked,
    can_think,
    looking,
    thought_place,
)
from cotrail.engines.language_models.served.probing.probe import NAMES, Field, Fitted, Probe, fit
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.errors import InputError

# What a server says of its models: their names, and how many tokens they take.

_WHOLE = {"gemini": "?pageSize=1000", "anthropic": "?limit=1000"}
"""What has providers list all of their models, and not the first of them alone."""


class ListedModel(Struct, frozen=True):
    """A model of a server; context: in tokens, 0 where it isn't said."""

    name: str
    context: int


def listed_models(endpoint: Endpoint) -> list[ListedModel]:
    """The models that a server lists. Raises InputError where it lists none, BlockedError where its key isn't set."""
    return [each for each in asyncio.run(_listing(endpoint)) if each.name]


async def _listing(endpoint: Endpoint) -> list[ListedModel]:
    async with aclosing(ServerClient(endpoint, PROTOCOLS[endpoint.api].headers)) as client:
        listing = await client.described(f"{endpoint.url}/models{_WHOLE.get(endpoint.api, '')}")
        given = listing.get("data") or listing.get("models")
        models = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        listed = [_model(each) for each in models]
        if len(models) != 1 or not isinstance(models[0].get("meta"), dict):
            return listed
        # llama.cpp lists what the model was trained with, and tells elsewhere what a slot of it has.
        try:
            properties = await client.described(f"{endpoint.root}/props")
        except InputError:
            return listed
        settings = properties.get("default_generation_settings")
        served = _context(settings) if isinstance(settings, dict) else 0
        return [ListedModel(name=listed[0].name, context=served or listed[0].context)]


def _model(said: dict[str, Any]) -> ListedModel:
    name = said.get("id") or said.get("name")
    meta = said.get("meta")
    context = _context(said) or (_context(meta) if isinstance(meta, dict) else 0)
    return ListedModel(name=name.removeprefix("models/") if isinstance(name, str) else "", context=context)


def _context(said: dict[str, Any]) -> int:
    contexts = (said.get(key) for key in NAMES["contexts"])
    return next((each for each in contexts if isinstance(each, int) and each > 0), 0)


# A proposed table of `models.toml`, with the reason of each line as a comment.

LONGEST = 300
"""Characters of a comment: a server's message may be any text, and a line break would end a comment."""

GIVEN = "given"
"""The reason of settings that stood in the table before."""


def as_toml(name: str, table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]], notes: Sequence[str]) -> str:
    """The table `[models.NAME]`; objects stand behind it as tables of their own.

    reasons: why, in lines, by the settings' names; those that have none were given. notes: sentences above it.
    """
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    objects = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [*map(_comment, notes), tomli_w.dumps({"models": {name: {}}}).strip(), *_proposed_settings(plain, reasons)]
    if objects:
        lines += ["", _comment(GIVEN), tomli_w.dumps({"models": {name: objects}}).strip()]
    return "\n".join(lines) + "\n"


def _proposed_settings(table: Mapping[str, Any], reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    before: Sequence[str] = ()
    for key, value in table.items():
        reason = reasons.get(key) or [GIVEN]
        # One comment is for all lines with the same reason.
        yield from map(_comment, reason if reason != before else ())
        yield tomli_w.dumps({key: value}).strip()
        before = reason


def _comment(text: str) -> str:
    return f"# {cut(text, LONGEST)}"


class Findings(Struct, frozen=True, kw_only=True):
    """What was learned.

    settings: of the model's table, which are to stand there as they are; None for what is to stand there no more.
    reasons: why, in lines, by the settings' names. requests, usage: what asking took. notes: further sentences.
    """

    settings: Mapping[str, Any]
    reasons: Mapping[str, Sequence[str]]
    requests: int
    usage: Usage
    notes: tuple[str, ...]


def usage_in_words(usage: Usage) -> str:
    """What a server reports of the tokens that it counts."""
    if usage.estimated == usage.calls:
        return "It reports no tokens, which are estimated then."
    kinds = {
        "read": usage.input_tokens,
        "written": usage.output_tokens,
        "thought": usage.thought_tokens,
        "read from a cache": usage.cached_tokens,
        "written to a cache": usage.cache_written_tokens,
    }
    some = f", but not in {usage.estimated} of {usage.calls} answers" if usage.estimated else ""
    return f"It reports the tokens {', '.join(name for name, count in kinds.items() if count)}{some}."


def limits_in_words(limits: Limits) -> str:
    """The limits that headers tell, which need no setting; empty where they tell none."""
    pairs = zip(DIMENSIONS, limits.values, strict=True)
    parts = [f"{value:,.0f} {name.replace('_', ' ')}" for name, value in pairs if value]
    return f"Its headers tell limits of {', '.join(parts)} a minute, which are kept without a setting." if parts else ""


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
    found = _tried(probe, endpoint, found, can)
    notes = [usage_in_words(probe.usage), limits_in_words(probe.limits), *_on_demand(probe, endpoint, found)]
    if "effort" in found.reasons and endpoint.effort:
        notes.append(f"It refuses the effort {endpoint.effort}: {found.reasons['effort']}")
    return Findings(
        settings=_settings(endpoint, found),
        reasons=_reasons(found, place, can),
        requests=probe.requests,
        usage=probe.usage,
        notes=tuple(filter(None, notes)),
    )


def check_answers(name: str, endpoint: Endpoint) -> None:
    """Send a model one small request, as its table says; raises InputError where it isn't answered."""
    request = GenerationRequest(asked(endpoint, QUESTION), "chain", _room(endpoint, TOKENS))
    outcome = Probe(name, lambda _: None).ask("whether it answers", endpoint, request)
    if outcome.result is None:
        raise InputError(
            f"{endpoint.url} doesn't answer as {name}: {outcome.why}; `cotrail models {name} --ask` finds out what it "
            "takes"
        )


def apis_to_try(endpoint: Endpoint, *, named: bool) -> tuple[Api, ...]:
    """The APIs that may be at an address; named: whether the table names its API, which is then tried first."""
    if endpoint.api == "gemini":
        return ("gemini",)
    return tuple(dict.fromkeys((*((endpoint.api,) if named else ()), *_ELSEWHERE)))


def _answering(probe: Probe, endpoint: Endpoint, apis: Sequence[Api]) -> Fitted:
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
        endpoint = replace(endpoint, thought_tokens=max(tokens, _least(endpoint)))
    if endpoint.thinking.may_think == before.thinking.may_think:
        return replace(found, endpoint=endpoint)
    request = GenerationRequest(asked(endpoint, QUESTION), "chain", _room(endpoint, TOKENS))
    again = fit(probe, f'thinks = "{place.thinks}"', endpoint, request)
    if again.outcome.result is None:
        raise InputError(
            f"{endpoint.url} thinks ({place.why}), and refuses requests that ask for it: {again.outcome.why}"
        )
    return _joined(found, again)


def _sampled(probe: Probe, found: Fitted) -> Fitted:
    if {"temperature", "top_p", "seed"} <= {*found.endpoint.omits}:
        return found
    request = GenerationRequest(asked(found.endpoint, QUESTION), "chain", _room(found.endpoint, TOKENS), SAMPLED)
    again = fit(probe, "sampling", found.endpoint, request)
    return _joined(found, again) if again.outcome.result is not None else found


def _tried(probe: Probe, given: Endpoint, found: Fitted, can: Sequence[Ability]) -> Fitted:
    """The table with all that was learned, by which a request was answered; thoughts have what the server allows."""
    own = given.thought_tokens or min(THOUGHT_TOKENS, given.context // 2)
    endpoint = replace(
        found.endpoint,
        continues=next((each.continues for each in can if each.continues), None),
        without=tuple(each.without for each in can if each.without),
        omits=tuple(dict.fromkeys((*found.endpoint.omits, *(each.omits for each in can if each.omits)))),
    )
    outcome = found.outcome
    for tokens in (own, own // 4) if endpoint.thinking.may_think else (0,):
        table = replace(endpoint, thought_tokens=max(tokens, _least(endpoint)))
        request = GenerationRequest(asked(table, QUESTION), "chain", _room(table, TOKENS))
        again = fit(probe, "the table as a whole", table, request)
        if again.outcome.result is not None:
            return _joined(found, again)
        outcome = again.outcome
    raise InputError(f"{given.url} answers what was asked of {given.model} one by one, and not together: {outcome.why}")


def _least(endpoint: Endpoint) -> int:
    """The least tokens of a thought that the API takes."""
    return LEAST_BUDGET if endpoint.api == "anthropic" and endpoint.thinking.may_think else 0


def _joined(before: Fitted, again: Fitted) -> Fitted:
    return Fitted(endpoint=again.endpoint, outcome=again.outcome, reasons={**before.reasons, **again.reasons})


def _on_demand(probe: Probe, given: Endpoint, found: Fitted) -> list[str]:
    """That a model of Anthropic's can be asked to think."""
    endpoint = found.endpoint
    if endpoint.api != "anthropic" or endpoint.thinking.may_think or given.thinks == "no":
        return []
    request = GenerationRequest(asked(endpoint, QUESTION), "chain", _room(endpoint, TOKENS))
    setting = can_think(probe, endpoint, request)
    return [f"It thinks where its table asks for it: {setting}."] if setting else []


def _room(endpoint: Endpoint, tokens: int) -> int:
    """The most tokens of a text, which a short context may not have."""
    return min(tokens, endpoint.context // 4)


def _settings(given: Endpoint, found: Fitted) -> Mapping[str, Any]:
    endpoint = found.endpoint
    of_the_former = {"chat_template": None, "bos": None, "eos": None} if endpoint.api != given.api else {}
    return {
        "api": endpoint.api,
        **of_the_former,
        "continues": endpoint.continues,
        "without": list(endpoint.without) or None,
        "thinks": endpoint.thinks,
        "thought_tokens": endpoint.thought_tokens or None,
        "effort": endpoint.effort or None,
        "limit_field": endpoint.limit_field or None,
        "omits": list(endpoint.omits) or None,
    }


def _reasons(found: Fitted, place: ThoughtPlace, can: Sequence[Ability]) -> Mapping[str, Sequence[str]]:
    refused: dict[Field, str] = {**found.reasons, **{each.omits: each.why for each in can if each.omits}}
    reasons: dict[str, Sequence[str]] = {
        "api": ["it answers"],
        "continues": [each.why for each in can if each.continues],
        "without": [f"{each.without}: {each.why}" for each in can if each.without],
        "thinks": [place.why],
        "thought_tokens": ["the most tokens of a thought, apart from those of each step's text"],
        "omits": [f"{field}: {why}" for field, why in refused.items() if field not in ("limit", "effort")],
    }
    reasons |= {"limit_field": [refused["limit"]]} if "limit" in refused else {}
    return reasons | ({"effort": [refused["effort"]]} if "effort" in refused and found.endpoint.effort else {})
