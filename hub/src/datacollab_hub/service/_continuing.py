"""An upload on its way: the next part, and where to go on."""

from __future__ import annotations

from typing import Any

from datacollab.errors import ExchangeError

from ..rules import Person, check_id, not_found
from ..store import Upload, add_chunk, chunk_blobs, drop_upload, upload_row
from ._finishing import finish, remove_parts
from ._hub import Hub

__all__ = ["OffsetDiffersError", "abandon", "append_part", "own_upload"]


class OffsetDiffersError(ExchangeError):
    """A part does not begin where the last one ended.

    Attributes
    ----------
    offset : int
        Where to go on.
    """

    def __init__(self, offset: int) -> None:
        super().__init__("OFFSET_DIFFERS", f"The hub has {offset} bytes. Go on from there.")
        self.offset = offset


def own_upload(hub: Hub, person: Person, project: str, upload: str) -> Upload:
    """An upload of the one who asks.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``.
    """
    check_id(upload)
    with hub.store.reading() as connection:
        found = upload_row(connection, upload)
    # Somebody else's upload is as good as none.
    if found is None or found.project != project or found.sender != person.fingerprint:
        raise not_found()
    return found


def append_part(hub: Hub, person: Person, upload: Upload, offset: int, body: bytes) -> dict[str, Any]:
    """Take the next part; with the last one, the file.

    Parameters
    ----------
    hub : Hub
    person : Person
    upload : Upload
        The person's own.
    offset : int
        Where the part begins.
    body : bytes
        May be empty at the end, to have the answer again.

    Returns
    -------
    dict
        ``file`` where that was the last part; else ``offset``, from which to go on.

    Raises
    ------
    ExchangeError
        ``OFFSET_DIFFERS``, ``TOO_LARGE``, ``REQUEST_MALFORMED``, ``NOT_FOUND``, and as `finish`.
    """
    # Whoever lost an answer learns here where to go on.
    if offset != upload.offset:
        raise OffsetDiffersError(upload.offset)
    end = offset + len(body)
    if end > upload.size:
        raise ExchangeError(
            "TOO_LARGE", f"The part ends at byte {end}; {upload.size} were announced. Send what was announced."
        )
    least = hub.settings.part_bytes
    if end < upload.size and len(body) < least:
        # Each part is a blob of its own: many small ones would use up what a disk can count.
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"The part has {len(body)} bytes; all but the last have {least} at least. Send the bytes from the offset "
            "on.",
        )
    if body:
        try:
            # Bytes before their row: a kill in between leaves a blob that nobody names, which is swept away.
            blob, _, _ = hub.store.blobs.write(f"uploads/{upload.id}", [body])
        except FileNotFoundError:
            # The upload ended at this moment, and its folder with it.
            raise not_found() from None
        try:
            with hub.store.writing() as connection:
                is_next = add_chunk(connection, upload.id, offset, len(body), blob, hub.clock())
        except BaseException:
            hub.store.blobs.remove(blob)
            raise
        # Another request brought a part for the same place, and the database counted that one in.
        if not is_next:
            hub.store.blobs.remove(blob)
            raise OffsetDiffersError(own_upload(hub, person, upload.project, upload.id).offset)
    if end == upload.size:
        return finish(hub, person, upload)
    return {"offset": end}


def abandon(hub: Hub, upload: Upload) -> None:
    """Give an upload up: it counts no more, and its parts go.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, when it ended meanwhile; ``BUSY``, when it is being finished.
    """
    # Not while it is being finished, or parts would go under the reader's hands.
    with hub.claims.of(upload.id):
        with hub.store.writing() as connection:
            parts = chunk_blobs(connection, upload.id)
            if not drop_upload(connection, upload.id):
                raise not_found()
        # After the transaction: had it been undone, the parts would still be wanted.
        remove_parts(hub, upload, parts)
