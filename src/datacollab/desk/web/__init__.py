"""What pages of any role need: one browser that is let in, forms that are its own, and work in the background."""

from ._app import Action, Commands, Desk, Page, Pages, Place, Session, bound_socket, create_app, door_page, serve
from ._forms import Chosen, DeskFiles, checked, chosen_file, chosen_files, given, handed_out, perhaps_file, text
from ._jobs import Job, Jobs, Refusal, refusal_of

__all__ = ["Action", "Commands", "Desk", "Page", "Pages", "Place", "Session", "bound_socket", "create_app", "door_page"]
__all__ += ["serve"]
__all__ += ["Chosen", "DeskFiles", "checked", "chosen_file", "chosen_files", "given", "handed_out", "perhaps_file"]
__all__ += ["Job", "Jobs", "Refusal", "refusal_of", "text"]
