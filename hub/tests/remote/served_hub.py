"""Runs a hub as a program that keeps no view: folder, address, port, and by how many seconds its clock is ahead."""

import sys
import time
from pathlib import Path

from datacollab_hub.rules import Settings
from datacollab_hub.service import Hub, Views
from datacollab_hub.store import Store
from datacollab_hub.web import serve


def main(folder, url, port, ahead):
    store = Store.opened(Path(folder))
    settings = Settings(url=url, requests_per_second=10_000.0)
    serve(
        Hub(store, settings, lambda: time.time() + float(ahead), views=Views(most_rows=0)),
        host="127.0.0.1",
        port=int(port),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
