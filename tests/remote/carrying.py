"""What `killing.py` kills: party b sends a share to a store, and the analyst fetches it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from datacollab.bundle import digest
from datacollab.remote import Kept, MemberFolder, StoreRemote, pull, push


def act(root):
    root = Path(root)
    store = StoreRemote(str(root / "store"))
    push(MemberFolder.at(root / "b"), store)
    folder, kept = root / "analyst", Kept.read(root / "analyst", "store")
    pull(MemberFolder.at(folder), store, kept, keep=lambda kept: kept.write(folder, "store"))


def check(root):
    """Whatever has its name is whole, in the store and in the inbox."""
    root = Path(root)
    made = (root / "b" / "outbox" / "b.dcshare").read_bytes()
    for file in (root / "store").rglob("*.dcshare"):
        assert file.name == f"{digest(made)}.dcshare"
        assert file.read_bytes() == made
    for file in (root / "analyst").glob("inbox/*.dcshare"):
        assert file.read_bytes() == made
    Kept.read(root / "analyst", "store")
    # The next one begins anew, now and then.
    if (root / "analyst" / "inbox" / "b.dcshare").exists():
        (root / "analyst" / "inbox" / "b.dcshare").unlink()
        (root / "analyst" / ".remotes" / "store.json").unlink(missing_ok=True)
        for file in (root / "store").rglob("*.dcshare"):
            file.unlink()
