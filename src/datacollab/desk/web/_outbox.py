"""Files that are to be sent: what is in the outbox, and nothing else."""

from __future__ import annotations

import shlex
from pathlib import Path

from starlette.responses import FileResponse

__all__ = ["files_in", "handed_out", "remote_commands"]


def files_in(outbox: Path) -> list[Path]:
    """The files in an outbox by name, but for hidden ones."""
    return sorted(file for file in outbox.iterdir() if file.is_file() and not file.name.startswith("."))


def remote_commands(folder: Path) -> dict[str, str]:
    """Commands that send what is in the outbox and fetch what came; none where the folder has no remote.

    Parameters
    ----------
    folder : Path
        The role's.
    """
    if not (folder / "remotes.toml").is_file():
        return {}
    return {verb: f"datacollab remote {verb} -C {shlex.quote(str(folder))}" for verb in ("push", "pull")}


def handed_out(outbox: Path, name: str) -> FileResponse:
    """One of them as a download.

    Raises
    ------
    FileNotFoundError
        Where there is no file of this name.
    """
    for file in files_in(outbox):
        if file.name == name:
            return FileResponse(file, filename=file.name, media_type="application/octet-stream")
    raise FileNotFoundError("There is no such file in the outbox. Look at the outbox again.")
