"""`cotrail migrate`: the tables of the database, brought up to date."""

from cotrail.cli.arguments import Json


def migrate(*, json: Json = False) -> None:
    """Bring the database's tables up to date: before the first start on a server of your own, and at each upgrade.

    `cotrail up` does so for the local stack. Live workers do no harm, and neither does a second migration at once.
    """
    from cotrail.cli.terminal.output import console, print_json
    from cotrail.services import migrating

    revisions = migrating.migrate()
    if json:
        print_json(revisions)
    elif revisions.before == revisions.after:
        console().print(f"The database is up to date (revision {revisions.after}).", soft_wrap=True)
    elif revisions.before is None:
        console().print(f"The tables are made (revision {revisions.after}).", soft_wrap=True)
    else:
        console().print(f"Migrated from revision {revisions.before} to {revisions.after}.", soft_wrap=True)
