"""Files of results, as OpenAI and Mistral have them: one of answers, one of errors."""

from collections.abc import Iterable, Iterator

from cotrail.core.ports.batches import BatchAnswer, Unanswered
from cotrail.engines.language_models.served.batches.answers import read_line
from cotrail.engines.language_models.served.batches.requests import ProviderId, ProviderRequests


def read_files(requests: ProviderRequests, files: Iterable[ProviderId | None]) -> Iterator[BatchAnswer | Unanswered]:
    """What became of each line of these files; None stands for one that isn't there."""
    for file in filter(None, files):
        for line in requests.lines(f"/files/{file}/content"):
            yield read_line(requests.endpoint, line)
