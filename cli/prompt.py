"""The exact prompt of a step, as `cotrail audit prompt` and `cotrail trace --prompt` print it."""

from cotrail.cli.output import print_exact, print_json


def print_prompt(text: str, run: str, question: str, step: int, *, json: bool) -> None:
    """Prints a step's prompt: its bytes and nothing else, or as JSON."""
    if json:
        print_json({"run": run, "question": question, "step": step, "prompt": text})
    else:
        print_exact(text)
