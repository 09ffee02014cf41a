"""What pages of any role need: one browser that is let in, forms that are its own, work in the background, pictures."""

from ._app import Action, Page, Pages, Place, bound_socket, create_app, serve
from ._entrance import Session, door_page
from ._forms import (
    Chosen,
    DeskFiles,
    checked,
    chosen_file,
    chosen_files,
    given,
    handed_out,
    number,
    perhaps_file,
    text,
)
from ._jobs import Job, Jobs, Refusal, refusal_of
from ._pictures import bars_svg, beam_svgs, interval_svgs, people_svg

__all__ = [
    "Action",
    "Chosen",
    "DeskFiles",
    "Job",
    "Jobs",
    "Page",
    "Pages",
    "Place",
    "Refusal",
    "Session",
    "bars_svg",
    "beam_svgs",
    "bound_socket",
    "checked",
    "chosen_file",
    "chosen_files",
    "create_app",
    "door_page",
    "given",
    "handed_out",
    "interval_svgs",
    "number",
    "people_svg",
    "perhaps_file",
    "refusal_of",
    "serve",
    "text",
]
