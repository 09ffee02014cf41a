"""The hub's id, which its place of blobs holds too."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Draw one."""
    table = op.create_table("hub", sa.Column("id", sa.String(length=32), nullable=False), sa.PrimaryKeyConstraint("id"))
    op.bulk_insert(table, [{"id": secrets.token_hex(16)}])


def downgrade() -> None:
    """Forget it."""
    op.drop_table("hub")
