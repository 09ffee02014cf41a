"""What pages of any role need: one browser that is let in, forms that are its own, work in the background, pictures."""

from ._app import Action, Page, create_app
from ._entrance import door_page
from ._files import Chosen, DeskFiles
from ._forms import checked, chosen_file, chosen_files, number, perhaps_file, text, whole_number, written_path
from ._jobs import Job, Jobs
from ._outbox import files_in, handed_out, remote_commands
from ._pages import Pages, Step
from ._pictures import bars_svg, beam_svgs, interval_svgs, people_svg
from ._refusal import Refusal, refusal_of
from ._serving import bound_socket, serve
from ._session import Session

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
