"""Error rate of the first sentence's end: sentencex alone, cotrail's rules, a spaCy pipeline.

`python -m benchmarks.sentences --corpus FILE... [--chains FILE...] [--pipeline NAME] [--output FILE]`. Most errors
occur in the titles of films and songs and in names, so each title of the corpora is put into three sentences, with
another sentence after them. For chains of thought there is no ground truth: there the sentences that differ from those
of cotrail's rules are counted.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from sentencex import segment

from benchmarks import machine
from cotrail.common.sentence_boundaries import first_sentence
from cotrail.data.corpora.files import read_corpus
from cotrail.data.demonstrations.sets import read_demonstrations
from cotrail.engines.language_models.sentence_splitters import open_pipeline, pinned

Split = Callable[[str], str]

NAME = "Franz Josef Gottlieb died in Berlin."
FORMS = {
    "a title at the end, before a name": ("The film was directed by {}.", NAME),
    "a title at the end, before a pronoun": ("The film was directed by {}.", "He died in Berlin."),
    "a title at the beginning": ("{} was released in 1990.", NAME),
}


def main(
    corpus: Annotated[list[Path], typer.Option(help="Paragraphs, whose titles are taken.")],
    chains: Annotated[list[Path], typer.Option(help="Demonstrations with chains of thought.")] = [],  # noqa: B006
    pipeline: Annotated[str | None, typer.Option(help="A pipeline of spaCy that is installed.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Count the errors of each way and print them."""
    ways = splitters(pipeline)
    titles = sorted({paragraph.title for paragraph in read_corpus(corpus)})
    texts = sorted({shown.answer for path in chains for shown in read_demonstrations(path).items})
    wrong = {form: counted(titles, *sentences, ways) for form, sentences in FORMS.items()}
    sentences = [rest for text in texts for rest in rests(text)]
    report = {
        "command": machine.command("benchmarks.sentences"),
        "titles": len(titles),
        "wrong": wrong,
        "chains": len(texts),
        "chain_sentences": len(sentences),
        "otherwise_than_rules": {
            way: sum(split(rest) != first_sentence(rest) for rest in sentences) for way, split in ways.items()
        },
        "machine": machine.describe(),
        "versions": machine.versions("sentencex", "spacy"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    table = Table(f"of {len(titles):,} titles, cut wrongly", *ways)
    for form, by_way in wrong.items():
        table.add_row(form, *(f"{each:,}" for each in by_way.values()))
    Console().print(table)


def splitters(pipeline: str | None) -> dict[str, Split]:
    """Ways to find a text's first sentence, by name."""
    ways: dict[str, Split] = {
        "sentencex": lambda text: next(iter(segment("en", text)), "").strip(),
        "rules": first_sentence,
    }
    if pipeline is not None:
        name = pinned(pipeline)
        ways[name] = open_pipeline(name).first_sentence
    return ways


def counted(titles: list[str], sentence: str, following: str, ways: dict[str, Split]) -> dict[str, int]:
    """Number of the titles' sentences that each way ends too early or too late."""
    texts = [sentence.format(title) for title in titles]
    return {way: sum(split(f"{text} {following}") != text for text in texts) for way, split in ways.items()}


def rests(chain: str) -> Iterator[str]:
    """The suffixes of a chain that begin with each of its sentences."""
    while sentence := first_sentence(chain):
        yield chain
        chain = chain.lstrip()[len(sentence) :]


if __name__ == "__main__":
    typer.run(main)
