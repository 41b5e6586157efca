"""A question's audit trail as W3C PROV-JSON (https://www.w3.org/submissions/prov-json/).

Entities: the question, paragraphs, what each search found, prompts by their digest, what each step wrote or judged, the
answer. Activities: steps with their times. Agents: the models, the corpus, who edited steps, cotrail itself.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from cotrail.audit.records import UNREADABLE, Record, Row, text
from cotrail.audit.referenced_contents import (
    ReferencedContents,
    edit_of,
    references_of_collected,
    references_of_request,
)
from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.core.actions.registry import KINDS, finds_paragraphs, view_of
from cotrail.core.binding import FURTHER_CORPUS, PINS
from cotrail.errors import CotrailError


def provenance(records: Iterable[Record]) -> dict[str, Any]:
    """The PROV-JSON document of a question, from the records of a store that concern it.

    CotrailError where a record can't be read, which means that it was changed.
    """
    document = _Document()
    try:
        for record in records:
            document.take(record)
        return document.end()
    except UNREADABLE as error:
        raise CotrailError(
            "what is recorded of the question can't be read; `cotrail audit verify RUN` names what was changed"
        ) from error


class _Document:
    """The document so far: PROV's elements and relations, each by its name."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, dict[str, Any]]] = {}
        self._related: set[tuple[str, ...]] = set()
        self._contents = ReferencedContents()
        self._run: Row = {}
        self._question: Row = {}
        self._texts: dict[str, str] = {}
        self._last = ""

    def take(self, record: Record) -> None:
        row = record.row
        match record.table:
            case "runs":
                self._take_run(row)
            case "paragraphs":
                list(self._contents.take(record))
                self._element(
                    "entity", f"paragraph/{row['digest']}", "Paragraph", label=row["title"], value=row["text"]
                )
            case "demonstrations":
                list(self._contents.take(record))
                self._element("entity", f"demonstrations/{row['digest']}", "Demonstrations")
            case "questions":
                self._question = row
                self._element("entity", self._question_name, "Question", label=row["key"], value=row["text"])
            case "steps":
                self._take_step(row)
            case "paragraph_sets":
                self._relate("hadMember", collection=f"found/{row['step_id']}", entity=f"paragraph/{row['digest']}")

    def end(self) -> dict[str, Any]:
        """Add the answer that the steps led to, and return the document."""
        answer = self._question["answer"]
        if answer is not None:
            name = f"answer/{self._question['id']}"
            self._element("entity", name, "Answer", value=answer, digest=self._question["digest"])
            used = [f"paragraph/{digest}" for digest in references_of_collected(self._question).paragraphs]
            self._derive(name, [self._question_name, *([self._last] if self._last else []), *used])
        return {"prefix": {"cotrail": "urn:cotrail:"}, **self._parts}

    @property
    def _question_name(self) -> str:
        return f"question/{self._question['id']}"

    def _take_run(self, run: Row) -> None:
        self._run = run
        settings = {name: run[name] for name in ("system", "system_version", "settings", "profile", "seed")}
        self._element("entity", f"run/{run['id']}", "prov:Plan", label=run["id"], digest=run["opened"], **settings)
        provenance = msgspec.json.decode(text(run, "provenance"))
        if (plan := provenance.get(PLAN)) is not None:
            written = msgspec.json.encode(plan).decode()
            self._element("entity", f"plan/{run['id']}", "prov:Plan", value=written, digest=plan_digest(plan))
            self._derive(f"run/{run['id']}", [f"plan/{run['id']}"])
        software = provenance.get("cotrail")
        self._element("agent", "agent/cotrail", "prov:SoftwareAgent", label=f"cotrail {software}")

    def _take_step(self, step: Row) -> None:
        """Add a step: the activity, its agents, the entities that it used and generated."""
        name = f"step/{step['id']}"
        attributes = {
            key: step[key] for key in ("sequence", "kind", "state", "fingerprint", "digest", "worker", "adopted_from")
        }
        self._element("activity", name, "Step", **attributes)
        times = {"prov:startTime": step["started_at"], "prov:endTime": step["finished_at"]}
        self._parts["activity"][_name(name)] |= {key: value for key, value in times.items() if value is not None}
        if step["edit"] is not None:
            self._parts["activity"][_name(name)]["cotrail:edit"] = step["edit"]
        for agent in (*self._people(step), *self._engines(step), "cotrail"):
            self._relate("wasAssociatedWith", activity=name, agent=f"agent/{agent}", plan=f"run/{self._run['id']}")
        used = self._used(step)
        for entity in used:
            self._relate("used", activity=name, entity=entity)
        if step["result"] is not None:
            self._take_result(step, name, used)

    def _people(self, step: Row) -> list[str]:
        """Add the person who edited a step, if somebody did; returns the agent's name."""
        edit = edit_of(step)
        if edit is None:
            return []
        name = f"person/{quote(edit.by, safe='')}"
        self._element("agent", f"agent/{name}", "prov:Person", label=edit.by)
        return [name]

    def _engines(self, step: Row) -> list[str]:
        """Add the engine that carried a step out, if its kind names one; returns the agent's name."""
        kind, edit = KINDS[text(step, "kind")], edit_of(step)
        if kind.pinned is None or (edit is not None and edit.text is not None):
            return []
        name = kind.pinned if isinstance(kind.pinned, str) else kind.pinned(msgspec.json.decode(text(step, "request")))
        further = msgspec.json.decode(text(self._run, "knowledge"))
        if name.startswith(FURTHER_CORPUS) and name not in further:  # the first corpus has a column of its own
            name = "corpus_revision"
        label = self._run[name] if name in (*PINS, "corpus_revision") else further.get(name)
        self._element("agent", f"agent/{name}", "prov:SoftwareAgent", label=label)
        return [name]

    def _take_result(self, step: Row, activity: str, used: list[str]) -> None:
        result = msgspec.json.decode(text(step, "result"))
        if finds_paragraphs(step["kind"]):
            made = f"found/{step['id']}"
            self._element("entity", made, "prov:Collection", digest=result["digest"])
        else:
            made = f"result/{step['id']}"
            self._element("entity", made, "Result", value=result.get("text", text(step, "result")))
        self._relate("wasGeneratedBy", entity=made, activity=activity)
        self._derive(made, used)
        self._last = made
        if "text" in result:
            self._texts[result["text"]] = made

    def _used(self, step: Row) -> list[str]:
        """The entities that a step used: its prompt if it has one (derived from the rest), else its other inputs."""
        request, referred = msgspec.json.decode(text(step, "request")), references_of_request(step)
        prompt = self._contents.prompt(step)
        earlier = request.get("sentences", ()) if prompt is None else prompt.texts_written
        sentences = [self._texts[each] for each in earlier if each in self._texts]
        if prompt is not None:
            name = f"prompt/{prompt.digest}"
            self._element("entity", name, "Prompt", value=prompt.render())
            parts = [f"paragraph/{paragraph.digest}" for paragraph in prompt.paragraphs]
            shots = [f"demonstrations/{digest}" for digest in referred.demonstrations]
            self._derive(name, [self._question_name, *shots, *parts, *sentences])
            return [name]
        # Sentences that a step compares with others are all used; what another kind asks is one text.
        text_asked = "" if sentences else view_of(self._contents.carried_out(step), None).asked
        asked = self._texts.get(text_asked, self._question_name)
        return list(dict.fromkeys([asked, *(f"paragraph/{digest}" for digest in referred.paragraphs), *sentences]))

    def _derive(self, made: str, used: Iterable[str]) -> None:
        for entity in used:
            self._relate("wasDerivedFrom", generatedEntity=made, usedEntity=entity)

    def _element(self, part: str, name: str, kind: str, /, **attributes: str | None) -> None:
        present = {
            f"prov:{key}" if key in ("label", "value") else f"cotrail:{key}": value
            for key, value in attributes.items()
            if value is not None
        }
        kind = kind if ":" in kind else f"cotrail:{kind}"
        element = {"prov:type": {"$": kind, "type": "prov:QUALIFIED_NAME"}, **present}
        self._parts.setdefault(part, {})[_name(name)] = element

    def _relate(self, relation: str, **ends: str) -> None:
        relations = self._parts.setdefault(relation, {})
        relationship = (relation, *ends, *ends.values())
        if relationship not in self._related:
            self._related.add(relationship)
            relations[f"_:{relation}{len(relations) + 1}"] = {f"prov:{end}": _name(name) for end, name in ends.items()}


def _name(local: str) -> str:
    return f"cotrail:{local}"
