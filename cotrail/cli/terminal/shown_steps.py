"""Steps on the terminal."""

import sys
from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from cotrail.cli.terminal.output import grid, in_json, print_exact
from cotrail.common.humanize import count, percent
from cotrail.common.printable_text import cut, one_line
from cotrail.core import views
from cotrail.core.questions import JudgedAnswer
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, Weighing
from cotrail.services.results.reasoning import Document, ShownChain, ShownNode, ShownTree, named, shown_tree
from cotrail.services.results.steps import ShownStep, StepPrompt
from cotrail.systems.judge.rubric import ClaimVerdict, Judgement
from cotrail.systems.searchain.tree import Tree

# Trees of reasoning on the terminal.

MOST_CHARACTERS = 200
"""How much of each text is shown, so that the tree can be seen as one."""

STYLES = {"model": "cyan", "corrected": "yellow", "completed": "magenta"}
"""The colours of the sources; nodes that were not looked at have none."""


def reasoned(tree: Tree, titles: Mapping[str, str], *, full: bool = False) -> RenderableType:
    """Each round's chain with the sources of its answers, and the final content with what its marks lead to.

    titles: of the paragraphs, by digest; full: whether long texts are shown whole.
    """
    view, width = shown_tree(tree, titles), sys.maxsize if full else MOST_CHARACTERS
    drawing = Drawing(Text("question", style="bold"), guide_style="dim")
    _add_chains(drawing, view.chains, width)
    return Group(drawing, Text(), _outcome(view, width))


def _add_chains(drawing: Drawing, chains: tuple[ShownChain, ...], width: int) -> None:
    for chain in chains:
        label = Text(f"round {chain.round}", style="bold")
        if chain.feedback:
            label.append(f"  feedback: {cut(chain.feedback, width)}", style="not bold italic dim")
        below = drawing.add(label)
        if not chain.nodes:
            below.add(Text("no queries", style="dim"))
        for each in chain.nodes:
            _add_chains(below.add(_node(each, width)), each.chains, width)


def _node(each: ShownNode, width: int) -> Text:
    style = STYLES.get(each.source, "dim")
    text = Text(_mark(each.document), style="bold").append(f"{cut(each.node.query, width)} ", style="not bold")
    text.append(f"→ {cut(each.answer, width) or 'no answer'}", style=f"not bold {style}")
    text.append(f"\n{each.source}", style=f"not bold {style}")
    facts = [*map(str, each.facts), *([f"in {each.document.title}"] if each.document.digest else [])]
    return text.append("".join(f" · {cut(fact, width)}" for fact in facts), style="not bold dim")


def _mark(document: Document) -> str:
    return "" if document.place is None else f"[{document.place}] "


def _outcome(view: ShownTree, width: int) -> Table:
    tree, table = view.tree, grid("dim", "")
    table.add_row("final content", Text(cut(tree.final, 3 * width) or "none"))
    table.add_row("stated answer", tree.stated or "none")
    marks = "found by answers" if view.found_marks else "marks"
    for number, mark in enumerate(view.marks):
        documents = ", ".join(f"{_mark(each)}{one_line(each.title) or 'no document'}" for each in mark.documents)
        table.add_row("" if number else marks, f"{cut(mark.text, width)} → {documents or 'no node'}")
    for number, violation in enumerate(view.violations):
        table.add_row("" if number else "violations", violation)
    table.add_row("engines", f"reader {tree.reader or 'none'}, duplicates by {tree.duplicates or 'nothing'}")
    table.add_row("", f"{count(tree.rounds, 'round')}, {count(len(tree.nodes), 'node')}, {len(tree.path)} in the path")
    return table


def weighed(weighing: Weighing, names: Mapping[str, str]) -> RenderableType:
    """Every chain with its sentences' scores, what a variant chose, and every prediction with its weight.

    names: the paragraphs' names by digest.
    """
    parts: list[RenderableType] = [_chains(weighing, names)]
    if weighing.facts:
        parts += [Text(), _facts(weighing.facts, names)]
    return Group(*parts, Text(), _predictions(weighing))


def _chains(weighing: Weighing, names: Mapping[str, str]) -> Table:
    table = _scored("sentence", scores=("M", "E", "C", "f"))
    for chain in weighing.chains:
        _add_chain(table, chain, names, chosen=chain.number == weighing.chosen)
    return table


def _add_chain(table: Table, chain: WeighedChain, names: Mapping[str, str], *, chosen: bool) -> None:
    style = "bold green" if chosen else "bold"
    prediction = Text(one_line(chain.prediction) or "no answer stated", style=style)
    table.add_row(str(chain.number + 1), prediction, "", "", "", f"{chain.faithfulness:.2f}", "", style=style)
    for each in chain.sentences:
        scores = (f"{value:.2f}" for value in (each.similarity, each.entailment, each.contradiction, each.score))
        evidence = named(each.evidence, names) if each.evidence else "none found"
        table.add_row("", each.text, *scores, Text(evidence, style="dim"))


def _facts(facts: tuple[ChosenFact, ...], names: Mapping[str, str]) -> Table:
    table = _scored("supporting fact", scores=("E", "C"))
    for fact in facts:
        evidence = named(fact.evidence, names) if fact.evidence else "none found"
        scores = f"{fact.entailment:.2f}", f"{fact.contradiction:.2f}"
        table.add_row(fact.origin, fact.text, *scores, Text(evidence, style="dim"))
    return table


def _scored(what: str, scores: Sequence[str]) -> Table:
    """A table of texts with their scores and their evidence; texts wrap, scores never do."""
    table = Table(box=None, header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column(what, overflow="fold")
    for score in scores:
        table.add_column(score, justify="right", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    return table


def _predictions(weighing: Weighing) -> Table:
    table = grid("dim", "bold", "", "dim")
    for number, each in enumerate(weighing.predictions):
        chains = ", ".join(str(chain + 1) for chain in each.chains)
        chains_named = f"chain{'s' * (len(each.chains) > 1)} {chains}" if chains else "no chain"
        table.add_row("" if number else "answers", each.prediction, f"{each.weight:.2f}", chains_named)
    return table


# A judge's verdict on the terminal, beneath the answers that it is on.

JUDGED_SNIPPET = 200


def judged(judgement: Judgement, answers: Sequence[JudgedAnswer], *, full: bool) -> RenderableType:
    """The judged answers, the verdict with its reasons, and each claim with the paragraphs cited for it."""
    table = grid("dim", "")
    for answer in answers:
        shown = answer.answer if full else one_line(cut(answer.answer, JUDGED_SNIPPET))
        table.add_row(f"judged in {answer.run}", Text(shown or "(empty)"))
    table.add_row("verdict", Text(_verdict(judgement), style="bold"))
    if judgement.extracted:
        table.add_row("extracted", Text(one_line(judgement.extracted)))
    if judgement.reasoning:
        table.add_row("reasons", Text(judgement.reasoning))
    return Group(table, Text(), _claims(judgement.claims)) if judgement.claims else table


def _verdict(judgement: Judgement) -> str:
    score = f"{judgement.verdict} by {judgement.rubric}, score {percent(judgement.score)}"
    sure = "" if judgement.confidence is None else f", {percent(judgement.confidence, 0)} sure"
    lacking = f"; no usable {', '.join(judgement.dropped)}" if isinstance(judgement.dropped, tuple) else ""
    return f"{score}{sure}{'; the two orders disagree' if judgement.consistent is False else ''}{lacking}"


def _claims(claims: Sequence[ClaimVerdict]) -> Table:
    table = Table(box=None, header_style="dim")
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("cited", no_wrap=True)
    for each in claims:
        cited = ", ".join(map(str, each.cited)) or "none"
        table.add_row(Text(one_line(each.claim)), each.verdict, cited)
    return table


def print_prompt(step: StepPrompt, *, json: bool) -> None:
    """Prints a step's prompt: its bytes and nothing else, or as JSON."""
    if not in_json(step, json=json):
        print_exact(step.prompt)


SNIPPET = 160
"""The most characters shown of a paragraph; `--full` shows all of it."""

THOUGHT = 80
"""The most characters shown of a thought; `--thoughts` shows all of it."""

MESSAGE, LINES = 1000, 20
"""The most characters and lines shown of what a model wrote; `--full` shows all of it."""


def step_head(step: ShownStep, turn: str) -> Text:
    """Its number and kind, and what it was about; turn: what it is in a conversation, empty in others."""
    text = Text(f"{step.sequence:>2} ", style="dim")
    text.append(step.kind, style="bold cyan")
    for label in (turn, step.view.source, *step.view.labels):
        if label:
            text.append(f"  {label}", style="cyan")
    if step.view.asked:
        text.append(f"  “{one_line(step.view.asked)}”")
    return text


def step_body(step: ShownStep, *, full: bool, thoughts: bool = False) -> RenderableType:
    """What came out of it; full: with paragraphs and texts whole; thoughts: with the model's thoughts whole."""
    parts = [_part(part, step, full=full, thoughts=thoughts) for part in step.view.parts]
    if step.failure:
        return Group(Text(f"failed: {step.failure.type}: {step.failure.message}", style="red"), *parts)
    return Group(*parts, Text(step.pending, style="dim")) if step.pending else Group(*parts)


def _part(part: views.Part, step: ShownStep, *, full: bool, thoughts: bool) -> RenderableType:
    match part:
        case views.FoundParagraphs():
            return _found(part, full=full) if part.hits else Text("nothing found", style="dim")
        case views.Thoughts():
            return _thoughts(part, whole=thoughts)
        case views.WrittenText():
            return Text((part.text if full else _beginning(part.text)) or part.blank)
        case views.ToolCalls():
            return Text("\n".join(f"called {one_line(call.name)} {one_line(call.arguments)}" for call in part.calls))
        case views.ScoredTexts():
            return _scores(part)
        case views.Facts():
            worker = [step.worker] if step.worker else []
            return Text(" · ".join((*part.facts, *step.words, *worker)), style="dim")
        case views.Note():
            return Text(one_line(part.text))
        case views.Recorded():
            result = "" if part.result is None else f"\n{json_of(part.result)}"
            return Text(json_of(part.request), style="dim").append(result, style="not dim")
    raise TypeError(f"{type(part).__name__} has no form on the terminal")


def _thoughts(part: views.Thoughts, *, whole: bool) -> Text:
    text = Text(part.words, style="dim")
    if whole and part.text:
        return text.append(f"\n{part.text}", style="italic")
    return text.append(f": {one_line(cut(part.text, THOUGHT))} (--thoughts)" if part.text else "")


def _found(paragraphs: views.FoundParagraphs, *, full: bool) -> Table:
    table = grid("green", "yellow", "dim", "dim", "")
    table.columns[2].justify = table.columns[3].justify = "right"
    for hit in paragraphs.hits:
        marks = "+" if hit.new else " ", "★" if hit.gold else " "
        table.add_row(*marks, str(hit.rank), hit.scored, _paragraph(hit, full=full))
    return table


def _paragraph(hit: views.FoundParagraph, *, full: bool) -> Text:
    text = Text(one_line(hit.paragraph.title), style="bold")
    body = hit.paragraph.text if full else cut(hit.paragraph.text, SNIPPET)
    return text.append(f"  {body}", style="not bold dim")


def _scores(scores: views.ScoredTexts) -> Table:
    table = grid("", "dim")
    table.columns[0].justify = "right"
    for row in scores.rows:
        table.add_row(f"{row.score:.2f}", one_line(row.text))
    return table


def _beginning(text: str) -> str:
    """A text whose end is left out where it would bury what stands below it."""
    beginning = "\n".join(text[:MESSAGE].split("\n", LINES)[:LINES])
    left_out = len(text) - len(beginning)
    return f"{beginning}…\n({left_out:,} more characters: --full)" if left_out else text


def json_of(value: object) -> str:
    """A value that has no form of its own, as JSON."""
    return msgspec.json.encode(value).decode()
