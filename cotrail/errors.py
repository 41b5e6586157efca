"""The exceptions that cotrail raises on purpose; the message of each says what to do.

An error may have notes (`add_note`): lines that are to be copied, such as a table for a file.

Systems see neither `BlockedError` nor `UnavailableError`: a blocked question waits for `cotrail resume`, and a step
whose server is unavailable waits until the server is back. The retry policy (`tasks/`) maps each error to what a
worker does about it. `StepFailed`, which a system may catch, is in `cotrail.core.system`.
"""

import tomllib
from pathlib import Path

DOCS = "https://github.com/cotrail/cotrail/blob/main/docs/"


class CotrailError(Exception):
    """Base class of all exceptions that cotrail raises on purpose."""

    @property
    def page(self) -> str:
        """The page of the docs that helps with errors of its class, by `errors.toml`."""
        pages: dict[str, str] = tomllib.loads(Path(__file__).with_name("errors.toml").read_text())
        own = (each.__name__ for each in type(self).__mro__ if each.__module__ == __name__)
        return DOCS + next(pages[name] for name in own if name in pages)


class InputError(CotrailError):
    """The user's input can't be used."""


class CorpusError(InputError):
    """A corpus file or index can't be used."""


class DatasetError(InputError):
    """A question file can't be used."""


class DemonstrationError(InputError):
    """A demonstration file can't be used."""


class TooLargeError(InputError):
    """An upload is larger than the service takes."""


class UnknownNameError(InputError):
    """Unknown name; the message lists the known ones."""


class RefusedError(CotrailError):
    """The one who asks may not do this."""


class UnauthenticatedError(RefusedError):
    """There is no token, or it isn't valid."""


class ForbiddenError(RefusedError):
    """The token doesn't allow it."""


class QuotaExceededError(RefusedError):
    """The project's quota is used up."""


class TooManyRequestsError(RefusedError):
    """Too many requests came in a short time; seconds: when to try again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class ConflictError(CotrailError):
    """It contradicts what is there."""


class BundleError(CotrailError):
    """The file is a damaged audit bundle, or isn't one."""


class UnavailableError(CotrailError):
    """A required server or process doesn't answer; seconds: the pause that it asks for (`Retry-After`), if it does."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class BusyError(UnavailableError):
    """The server answers, but the account may send no further requests at the moment (429, 529).

    Other steps that need the same server may go on: it isn't away.
    """


class OutdatedError(UnavailableError):
    """The database belongs to another version of cotrail, or to another Redis: this process has to be replaced."""


class BatchLostError(UnavailableError):
    """The provider doesn't know a batch that it was sent: it was deleted there, or it is another account's."""


class StepError(CotrailError):
    """The step failed permanently: no retry can succeed."""


class PromptTooLongError(StepError):
    """The prompt doesn't fit the model's context, even without demonstrations and paragraphs."""


class UnrecordableError(StepError):
    """The step's result can't be recorded."""


class UnansweredError(StepError):
    """A language model wrote no answer: thoughts alone, a refusal, or another form than it was asked for.

    written: what it wrote instead, a `cotrail.core.results.Generated`.
    """

    def __init__(self, message: str, written: object = None) -> None:
        super().__init__(message)
        self.written = written


class TransientStepError(CotrailError):
    """The step failed temporarily: a retry may succeed."""


class OverdueError(TransientStepError):
    """An execution exceeded the time limit of its kind of action."""


class BlockedError(CotrailError):
    """The question can't continue until a person fixes something.

    written: what a language model had written by then, which was paid all the same, a
        `cotrail.core.results.Generated`; None where it wrote nothing.
    """

    def __init__(self, message: str, written: object = None) -> None:
        super().__init__(message)
        self.written = written


class CorpusChangedError(BlockedError):
    """The corpus isn't the one that the run pins."""


class ModelChangedError(BlockedError):
    """The model isn't the one that the run pins."""


class QuotaError(BlockedError):
    """The account with a provider is used up: waiting doesn't help."""


class NotInstalledError(BlockedError, UnavailableError):
    """A required library isn't installed on the worker's machine.

    Both a `BlockedError` (this worker can't help it) and an `UnavailableError` (another worker may have the library).
    """


class UnreadableError(BlockedError):
    """The record of a step is damaged, written by a newer version, or refers to content that isn't in the store."""


class UnknownVersionError(BlockedError):
    """The worker doesn't have the system in the version that the run pins."""


class ReplayMismatchError(BlockedError):
    """Replay diverged: the code no longer yields the recorded steps.

    sequence: the step's position in the question, from 0; recorded, yielded: a one-line description of each side.
    """

    def __init__(self, sequence: int, recorded: str, yielded: str) -> None:
        super().__init__(
            f"step {sequence} no longer agrees with the record: recorded {recorded}; the code now yields {yielded}. "
            "Put back the code or the settings that the run began with, or submit a new run; "
            "then continue with `cotrail resume RUN`."
        )
        self.sequence = sequence
        self.recorded = recorded
        self.yielded = yielded
