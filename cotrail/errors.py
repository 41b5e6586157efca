"""Every error that cotrail raises on purpose.

CotrailError
├── InputError               what a person handed in can't be used
│   ├── CorpusError            a corpus file or index
│   ├── DatasetError           a question file
│   ├── DemonstrationError     a demonstration file
│   └── UnknownNameError       a corpus, model, system, reader, run or question that isn't there
├── BundleError              an audit bundle is damaged or none
├── UnavailableError         a server or a process that's needed doesn't answer
├── StepError                a step can't succeed, however often it is tried
│   ├── PromptTooLongError     even without demonstrations and paragraphs it doesn't fit
│   └── UnrecordableError      the result is such that it can't be recorded
├── TransientStepError       a step failed in a way that another try may mend
│   └── OverdueError           an execution took longer than its kind may
└── BlockedError             a question can't go on until a person mends something
    ├── ReplayMismatchError    the code yields something else than what is recorded
    ├── CorpusChangedError     the corpus isn't the one that the run was submitted with
    ├── ModelChangedError      the model isn't the one that the run was submitted with
    ├── NotInstalledError      a library that's needed isn't installed; an UnavailableError too
    ├── UnreadableError        what is recorded of a step, or what that refers to, can't be read
    └── UnknownVersionError    this worker doesn't have the system's version

`BlockedError` never enters a system: the question waits, and goes on after `cotrail resume`. Nor does an
`UnavailableError`: the step waits until the server is back. What a worker does about each: `tasks/retry_policy.py`.
`StepFailed`, which a system may catch, is in `cotrail.core.system`.
"""


class CotrailError(Exception):
    """Something went wrong; the message says what to do."""


class InputError(CotrailError):
    """What was handed in can't be used."""


class CorpusError(InputError):
    """A corpus file or index can't be used."""


class DatasetError(InputError):
    """A question file can't be used."""


class DemonstrationError(InputError):
    """A demonstration file can't be used."""


class UnknownNameError(InputError):
    """Nothing goes by that name; the message lists what there is."""


class BundleError(CotrailError):
    """A file of an audit trail is damaged, or is none."""


class UnavailableError(CotrailError):
    """A server or a process that is needed doesn't answer; seconds: how long it asks to be left alone, if it does."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class StepError(CotrailError):
    """The step can't succeed, however often it is tried."""


class PromptTooLongError(StepError):
    """The prompt doesn't fit the model's context, even without demonstrations and paragraphs."""


class UnrecordableError(StepError):
    """What the step resulted in can't be recorded."""


class TransientStepError(CotrailError):
    """The step failed in a way that another try may mend."""


class OverdueError(TransientStepError):
    """An execution took longer than its kind may."""


class BlockedError(CotrailError):
    """The question can't go on until a person mends something."""


class CorpusChangedError(BlockedError):
    """The corpus isn't the one that the run was submitted with."""


class ModelChangedError(BlockedError):
    """The model isn't the one that the run was submitted with."""


class NotInstalledError(BlockedError, UnavailableError):
    """A library that is needed isn't installed where the work is to be done."""


class UnreadableError(BlockedError):
    """What is recorded of a step is damaged, from a newer version, or refers to what isn't in the store."""


class UnknownVersionError(BlockedError):
    """The system isn't here in the version that the run pins."""


class ReplayMismatchError(BlockedError):
    """The code yields something else than what is recorded.

    sequence: the step's place in the question, from 0; recorded, yielded: a line each.
    """

    def __init__(self, sequence: int, recorded: str, yielded: str) -> None:
        super().__init__(
            f"step {sequence} no longer agrees with the record: recorded {recorded}; the code now yields {yielded}. "
            "Put back the code or the settings that the run began with, or submit a new run; "
            "then `cotrail resume RUN` goes on."
        )
        self.sequence = sequence
        self.recorded = recorded
        self.yielded = yielded
