"""`cotrail worker`: a worker in this process."""

from typing import Annotated, Literal

import typer


def worker(
    role: Annotated[
        Literal["generation", "retrieval", "evidence", "maintenance"],
        typer.Argument(
            metavar="ROLE",
            help="generation writes with the language model; retrieval searches; evidence compares and reads texts; "
            "maintenance admits, sends and recovers steps, and one or two of it are enough for any number of hosts.",
        ),
    ],
    *,
    slots: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many steps at a time: COTRAIL_GENERATION_SLOTS, besides those of served models, 2 for retrieval, "
            "16 for evidence unless said.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Its name before @ and the host, the role unless said; workers of one host need different ones.",
        ),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Tell Flower of each task.")] = False,
) -> None:
    """Run a worker in this process until it is stopped, on this or any other host.

    COTRAIL_DATABASE_URL and COTRAIL_BROKER_URL, or COTRAIL_HOME on the host of the local stack, say whose work it does.
    """
    if role == "maintenance":
        if slots or name or events:
            raise typer.BadParameter("--slots, --name and --events are for workers that carry out steps")
        from cotrail.workers import maintenance

        maintenance.main()
    else:
        from cotrail.workers.allocator import tune

        tune()
        from cotrail.workers.app import serve

        serve(role, slots=slots, name=name, events=events)
