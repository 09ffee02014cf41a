"""The hub: a mailbox for signed files of many projects.  It computes nothing, and opens nothing.

* Permissions of roles, as tables and pure functions: `rules`.
* Storage: `store`. The work of each route, without HTTP: `service`.
* Over HTTP: `web`; for people: `pages`.
* Signed requests, and the log's chain: `requests`.
* The kind of remote that carries files to a hub and from it: `remote`.
* Commands: `commands`.

`datacollab` finds the commands and the kind of remote by entry points.
"""

from ._codes import CODES
from ._version import __version__

__all__ = ["CODES", "__version__"]
