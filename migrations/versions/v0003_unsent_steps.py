"""An index for unsent steps, in the order in which they are sent."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_index("steps_open_idx", table_name="steps")
    op.create_index(
        "steps_unsent_idx", "steps", ["kind", "id"], postgresql_where=sa.text("state = 'ready' AND sent_at IS NULL")
    )
    op.create_index(
        "steps_sent_idx",
        "steps",
        ["kind", "sent_at"],
        postgresql_where=sa.text("state = 'ready' AND sent_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("steps_unsent_idx", table_name="steps")
    op.drop_index("steps_sent_idx", table_name="steps")
    op.create_index("steps_open_idx", "steps", ["kind", "sent_at"], postgresql_where=sa.text("state = 'ready'"))
