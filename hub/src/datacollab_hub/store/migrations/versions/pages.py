"""Browsers that are signed in to the pages, and every project file that held."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables, and keep the project files that hold now."""
    op.create_table(
        "browsers",
        sa.Column("cookie_sha256", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["fingerprint"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("cookie_sha256"),
    )
    op.create_table(
        "agreements",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("agreement", sa.LargeBinary(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.PrimaryKeyConstraint("project", "revision"),
    )
    op.execute(
        "INSERT INTO agreements (project, revision, digest, agreement) "
        "SELECT id, revision, digest, agreement FROM projects WHERE digest IS NOT NULL"
    )


def downgrade() -> None:
    """Remove them: browsers sign in anew, and earlier project files are lost."""
    op.drop_table("agreements")
    op.drop_table("browsers")
