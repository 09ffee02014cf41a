"""Tables of the hub.  Times are seconds since 1970; an empty text stands for nobody where a unique index needs it."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

METADATA = MetaData()
# As long as the forms that `rules` lets through.
_ID = String(32)
_FINGERPRINT = String(19)
_SHA256 = String(64)
_NAME = String(200)


def _of_project(*, primary_key: bool = False) -> Column[str]:
    return Column("project", _ID, ForeignKey("projects.id"), primary_key=primary_key, nullable=False)


hub = Table("hub", METADATA, Column("id", _ID, primary_key=True))
keys = Table(
    "keys",
    METADATA,
    Column("fingerprint", _FINGERPRINT, primary_key=True),
    Column("public", String(200), nullable=False),
    Column("may_open", Boolean, nullable=False),
    Column("added", BigInteger, nullable=False),
)
projects = Table(
    "projects",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", _NAME, nullable=False),
    Column("owner", _FINGERPRINT, ForeignKey("keys.fingerprint"), nullable=False),
    Column("opened", BigInteger, nullable=False),
    # These five are of the project file, and none before its owner has sent one.
    Column("agreement", LargeBinary),
    Column("digest", _SHA256),
    Column("revision", Integer),
    Column("deadline", Date),
    Column("quorum", Integer),
)
members = Table(
    "members",
    METADATA,
    _of_project(primary_key=True),
    Column("fingerprint", _FINGERPRINT, ForeignKey("keys.fingerprint"), primary_key=True),
    # In the key, as an owner may be a party too.
    Column("role", String(16), primary_key=True),
    Column("name", _NAME, nullable=False),
    Index("members_by_key", "fingerprint"),
)
invitations = Table(
    "invitations",
    METADATA,
    Column("id", _ID, primary_key=True),
    _of_project(),
    Column("name", _NAME, nullable=False),
    Column("role", String(16), nullable=False),
    # The secret itself is in the link alone.
    Column("secret_sha256", _SHA256, nullable=False, unique=True),
    Column("expires", BigInteger, nullable=False),
    Column("used_by", _FINGERPRINT, ForeignKey("keys.fingerprint")),
)
requests = Table(
    "requests",
    METADATA,
    _of_project(primary_key=True),
    Column("fingerprint", _FINGERPRINT, ForeignKey("keys.fingerprint"), primary_key=True),
    # With its owner's proof, as owners of projects want to check it themselves.
    Column("public_key", String(600), nullable=False),
    Column("role", String(16), nullable=False),
    Column("name", _NAME, nullable=False),
    Column("asked", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
)
uploads = Table(
    "uploads",
    METADATA,
    Column("id", _ID, primary_key=True),
    _of_project(),
    Column("sender", _FINGERPRINT, ForeignKey("keys.fingerprint"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("sha256", _SHA256, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("recipient", _FINGERPRINT, nullable=False),
    # Moved on by the statement that compares it, so that parts follow one another.
    Column("offset", BigInteger, nullable=False),
    Column("touched", BigInteger, nullable=False),
    # An announcement that comes again finds its upload, and begins no second one.
    Index("uploads_once", "project", "sender", "kind", "sha256", "recipient", unique=True),
)
chunks = Table(
    "chunks",
    METADATA,
    Column("upload", _ID, ForeignKey("uploads.id"), primary_key=True),
    Column("start", BigInteger, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("blob", String(200), nullable=False),
)
# Of withdrawn files, any number stay in the table.
_LIVE = text("withdrawn IS NULL")
# Two shares of the same rows tell more than one, whatever a race lets through.
_LIVE_SHARE = text("withdrawn IS NULL AND kind = 'share'")
files = Table(
    "files",
    METADATA,
    Column("id", Integer, primary_key=True),
    _of_project(),
    Column("kind", String(16), nullable=False),
    Column("sha256", _SHA256, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sender", _FINGERPRINT, ForeignKey("keys.fingerprint"), nullable=False),
    Column("recipient", _FINGERPRINT, nullable=False),
    Column("project_digest", _SHA256, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("withdrawn", BigInteger),
    Column("blob", String(200), nullable=False),
    Index("files_once", "project", "sha256", unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index(
        "one_live_share", *("project", "sender"), unique=True, sqlite_where=_LIVE_SHARE, postgresql_where=_LIVE_SHARE
    ),
)
fetches = Table(
    "fetches",
    METADATA,
    Column("file", Integer, ForeignKey("files.id"), primary_key=True),
    Column("fingerprint", _FINGERPRINT, ForeignKey("keys.fingerprint"), primary_key=True),
    Column("time", BigInteger, nullable=False),
)
log = Table(
    "log",
    METADATA,
    _of_project(primary_key=True),
    # Counted without gaps in each project, by whoever holds the project's row.
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", String(20), nullable=False),
    Column("who", _FINGERPRINT, nullable=False),
    Column("action", String(32), nullable=False),
    Column("facts", JSON, nullable=False),
    Column("previous", _SHA256, nullable=False),
    Column("digest", _SHA256, nullable=False),
)
nonces = Table(
    "nonces",
    METADATA,
    Column("fingerprint", _FINGERPRINT, primary_key=True),
    Column("nonce", String(64), primary_key=True),
    Column("until", BigInteger, nullable=False),
    Index("nonces_by_time", "until"),
)
sessions = Table(
    "sessions",
    METADATA,
    Column("secret_sha256", _SHA256, primary_key=True),
    Column("fingerprint", _FINGERPRINT, ForeignKey("keys.fingerprint"), nullable=False),
    Column("expires", BigInteger, nullable=False),
)
browsers = Table(
    "browsers",
    METADATA,
    Column("cookie_sha256", _SHA256, primary_key=True),
    Column("fingerprint", _FINGERPRINT, ForeignKey("keys.fingerprint"), nullable=False),
    Column("expires", BigInteger, nullable=False),
)
agreements = Table(
    "agreements",
    METADATA,
    _of_project(primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("digest", _SHA256, nullable=False),
    Column("agreement", LargeBinary, nullable=False),
    # Not known of revisions from before they were kept.
    Column("received", BigInteger),
)
