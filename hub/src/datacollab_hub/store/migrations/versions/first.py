"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "keys",
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("public", sa.String(length=200), nullable=False),
        sa.Column("may_open", sa.Boolean(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_table(
        "nonces",
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "nonce"),
    )
    op.create_index("nonces_by_time", "nonces", ["until"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("owner", sa.String(length=19), nullable=False),
        sa.Column("opened", sa.BigInteger(), nullable=False),
        sa.Column("agreement", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("deadline", sa.Date(), nullable=True),
        sa.Column("quorum", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["owner"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "sessions",
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["fingerprint"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("secret_sha256"),
    )
    op.create_table(
        "files",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sender", sa.String(length=19), nullable=False),
        sa.Column("recipient", sa.String(length=19), nullable=False),
        sa.Column("project_digest", sa.String(length=64), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn", sa.BigInteger(), nullable=True),
        sa.Column("blob", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.ForeignKeyConstraint(["sender"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "files_once",
        "files",
        ["project", "sha256"],
        unique=True,
        sqlite_where=sa.text("withdrawn IS NULL"),
        postgresql_where=sa.text("withdrawn IS NULL"),
    )
    op.create_index(
        "one_live_share",
        "files",
        ["project", "sender"],
        unique=True,
        sqlite_where=sa.text("withdrawn IS NULL AND kind = 'share'"),
        postgresql_where=sa.text("withdrawn IS NULL AND kind = 'share'"),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.String(length=19), nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.ForeignKeyConstraint(["used_by"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_sha256"),
    )
    op.create_table(
        "log",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.String(length=20), nullable=False),
        sa.Column("who", sa.String(length=19), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.PrimaryKeyConstraint("project", "seq"),
    )
    op.create_table(
        "members",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["fingerprint"], ["keys.fingerprint"]),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.PrimaryKeyConstraint("project", "fingerprint", "role"),
    )
    op.create_index("members_by_key", "members", ["fingerprint"], unique=False)
    op.create_table(
        "requests",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("public_key", sa.String(length=600), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["fingerprint"], ["keys.fingerprint"]),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.PrimaryKeyConstraint("project", "fingerprint"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("sender", sa.String(length=19), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("recipient", sa.String(length=19), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("touched", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.ForeignKeyConstraint(["sender"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("uploads_once", "uploads", ["project", "sender", "kind", "sha256", "recipient"], unique=True)
    op.create_table(
        "chunks",
        sa.Column("upload", sa.String(length=32), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["upload"], ["uploads.id"]),
        sa.PrimaryKeyConstraint("upload", "start"),
    )
    op.create_table(
        "fetches",
        sa.Column("file", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=19), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["file"], ["files.id"]),
        sa.ForeignKeyConstraint(["fingerprint"], ["keys.fingerprint"]),
        sa.PrimaryKeyConstraint("file", "fingerprint"),
    )


def downgrade() -> None:
    """Remove them, and all that is in them."""
    op.drop_table("fetches")
    op.drop_table("chunks")
    op.drop_index("uploads_once", table_name="uploads")
    op.drop_table("uploads")
    op.drop_table("requests")
    op.drop_index("members_by_key", table_name="members")
    op.drop_table("members")
    op.drop_table("log")
    op.drop_table("invitations")
    op.drop_index(
        "one_live_share",
        table_name="files",
        sqlite_where=sa.text("withdrawn IS NULL AND kind = 'share'"),
        postgresql_where=sa.text("withdrawn IS NULL AND kind = 'share'"),
    )
    op.drop_index(
        "files_once",
        table_name="files",
        sqlite_where=sa.text("withdrawn IS NULL"),
        postgresql_where=sa.text("withdrawn IS NULL"),
    )
    op.drop_table("files")
    op.drop_table("sessions")
    op.drop_table("projects")
    op.drop_index("nonces_by_time", table_name="nonces")
    op.drop_table("nonces")
    op.drop_table("keys")
