"""The exact prompt of a step, as `cotrail audit prompt` and `cotrail trace --prompt` print it."""

from cotrail.cli.terminal.output import print_exact, print_json
from cotrail.services.views.step_prompts import StepPrompt


def print_prompt(step: StepPrompt, *, json: bool) -> None:
    """Prints a step's prompt: its bytes and nothing else, or as JSON."""
    if json:
        print_json(step)
    else:
        print_exact(step.prompt)
