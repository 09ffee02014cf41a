"""What pages of any role need: one browser that is let in, forms that are its own, work in the background, pictures."""

from ._app import Action, Page, bound_socket, create_app, serve
from ._entrance import Session, door_page
from ._files import Chosen, DeskFiles, files_in, handed_out, remote_commands
from ._forms import checked, chosen_file, chosen_files, number, perhaps_file, text, whole_number, written_path
from ._jobs import Job, Jobs, Refusal, refusal_of
from ._pages import Pages, Step
from ._pictures import bars_svg, beam_svgs, interval_svgs, people_svg

__all__ = [
    "Action",
    "Chosen",
    "DeskFiles",
    "Job",
    "Jobs",
    "Page",
    "Pages",
    "Refusal",
    "Session",
    "Step",
    "bars_svg",
    "beam_svgs",
    "bound_socket",
    "checked",
    "chosen_file",
    "chosen_files",
    "create_app",
    "door_page",
    "files_in",
    "handed_out",
    "interval_svgs",
    "number",
    "people_svg",
    "perhaps_file",
    "refusal_of",
    "remote_commands",
    "serve",
    "text",
    "whole_number",
    "written_path",
]
