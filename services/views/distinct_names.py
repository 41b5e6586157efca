"""Names of runs by which they can be told apart."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from cotrail.models.records.labels import read_labels


def distinct_names(connection: Connection, ids: Sequence[str]) -> Mapping[str, str]:
    """Each run's own name where it has one that no other of them has, otherwise its id."""
    labels = read_labels(connection, ids)
    named = [labels[run_id].name if run_id in labels else None for run_id in ids]
    return {
        run_id: name if name and named.count(name) == 1 and name not in ids else run_id
        for run_id, name in zip(ids, named, strict=True)
    }
