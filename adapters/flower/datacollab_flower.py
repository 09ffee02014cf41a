"""Files of a datacollab exchange through a Flower deployment.

The apps carry signed files as bytes, and compute nothing.  What may leave a party's folder and what may come into its
inbox is decided there, by `datacollab_relay.answer`; which folder that is, by whoever starts the SuperNode.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from datacollab_relay import Message as Told
from datacollab_relay import Relayed, answer, relay
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

__all__ = ["client", "server"]

RECORD = "datacollab"
ACTION = "query.datacollab"
NODE_FOLDER = "datacollab-folder"
"""Key of a SuperNode's configuration: its party's folder."""
RELAY_FOLDER = "DATACOLLAB_RELAY"
"""Environment variable of the SuperLink: the analyst's folder, or an empty one."""

client = ClientApp()
server = ServerApp()


@client.query("datacollab")
def carry(message: Message, context: Context) -> Message:
    """What a party's side answers."""
    told = answer(party_folder(context), dict(message.content.config_records[RECORD]))
    return Message(RecordDict({RECORD: ConfigRecord(told)}), reply_to=message)


@server.main()
def serve(grid: Grid, context: Context) -> None:
    """One round over the SuperNodes that are there."""
    seconds = float(context.run_config["seconds"])
    members = nodes(grid, int(context.run_config["members"]), seconds)
    tell(relay(relay_folder(), members, lambda messages: send(grid, messages, seconds)))


def send(grid: Grid, messages: Mapping[str, Told], seconds: float) -> dict[str, Told]:
    """Messages to nodes, and the answers of those who gave one."""
    sent = [
        Message(RecordDict({RECORD: ConfigRecord(dict(told))}), dst_node_id=int(node), message_type=ACTION)
        for node, told in messages.items()
    ]
    answers: dict[str, Told] = {}
    for reply in grid.send_and_receive(sent, timeout=seconds):
        node = str(reply.metadata.src_node_id)
        if reply.has_error():
            log(WARNING, "Node %s failed: %s", node, reply.error.reason)
        elif (record := reply.content.config_records.get(RECORD)) is None:
            log(WARNING, "Node %s answered without the record %s; compare the programs' versions", node, RECORD)
        else:
            answers[node] = dict(record)
    return answers


def nodes(grid: Grid, wanted: int, seconds: float) -> list[str]:
    """Nodes that are connected, as soon as there are enough of them; after so many seconds those that there are."""
    until = time.monotonic() + seconds
    while len(found := list(grid.get_node_ids())) < wanted and time.monotonic() < until:
        time.sleep(1)
    return [str(node) for node in found]


def tell(done: Relayed) -> None:
    """What a round came to, for the run's log."""
    for member, number in done.came.items():
        log(INFO, "%s: %s files came", member or "relay", number)
    for member in done.silent:
        log(WARNING, "%s did not answer; run it again when it is there", member)
    for member, codes in done.refused.items():
        for code in codes:
            log(WARNING, "%s: refused: %s", member or "relay", code)


def party_folder(context: Context) -> Path:
    """The folder that the SuperNode was started for; nothing that a message or a run says can choose it."""
    return _folder(context.node_config.get(NODE_FOLDER), f"flower-supernode --node-config '{NODE_FOLDER}=\"FOLDER\"'")


def relay_folder() -> Path:
    """The folder of the analyst's side, which whoever starts the SuperLink says."""
    return _folder(os.environ.get(RELAY_FOLDER), f"{RELAY_FOLDER}=FOLDER flower-superlink")


def _folder(given: Any, how: str) -> Path:
    if not isinstance(given, str) or not Path(given).is_dir():
        raise ValueError(f"No folder is configured, or it is not there. Start it with: {how}")
    return Path(given)
