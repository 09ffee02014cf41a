"""Parts of any role's pages: one browser that is let in, forms that are its own, and work in the background."""

from ._desk_app import (
    Action,
    Commands,
    Desk,
    Page,
    Pages,
    Session,
    StepForm,
    StepPlace,
    bind_socket,
    create_app,
    door_page,
    serve,
)
from ._forms import (
    Chosen,
    DeskFiles,
    download_of,
    is_ticked,
    read_inputs,
    take_file,
    take_files,
    take_optional_file,
    text,
)
from ._jobs import Job, Jobs, Refusal, refusal_of

__all__ = ["Action", "Chosen", "Commands", "Desk", "DeskFiles", "Job", "Jobs", "Page", "Pages", "Refusal", "Session"]
__all__ += ["StepForm", "StepPlace", "bind_socket", "create_app", "door_page", "download_of", "is_ticked"]
__all__ += ["read_inputs", "refusal_of", "serve", "take_file", "take_files", "take_optional_file", "text"]
