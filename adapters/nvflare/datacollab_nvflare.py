"""Files of a datacollab exchange through an NVFlare federation.

The components carry signed files as bytes, and compute nothing.  What may leave a party's folder and what may come into
its inbox is decided there, by `datacollab_relay.answer`; which folder that is, by the site, never by a job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from datacollab_relay import Message, Relayed, answer, relay
from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

__all__ = ["Carrier", "Relay"]

TASK = KEY = "datacollab"
PARTY_FOLDER, RELAY_FOLDER = "DATACOLLAB_FOLDER", "DATACOLLAB_RELAY"
"""Environment variables of a site and of the server: a party's folder, and the analyst's or an empty one."""
SITE = "{site}"
"""In the path of a party's folder, the site's name: simulated sites have one environment."""


class Carrier(Executor):
    """What a party's side answers."""

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """As of `Executor`."""
        message = shareable.get(KEY)
        if task_name != TASK or not isinstance(message, dict):
            return make_reply(ReturnCode.TASK_UNKNOWN)
        reply = make_reply(ReturnCode.OK)
        reply[KEY] = answer(party_folder(fl_ctx.get_identity_name()), message)
        return reply


class Relay(Controller):
    """One round over the sites that are there.

    Parameters
    ----------
    seconds : int, default=600
        How long a site has for each answer.
    """

    def __init__(self, seconds: int = 600) -> None:
        super().__init__()
        self.seconds = seconds

    def start_controller(self, fl_ctx: FLContext) -> None:
        """As of `Controller`."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """As of `Controller`."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """As of `Controller`."""
        sites = [client.name for client in fl_ctx.get_engine().get_clients()]
        done = relay(relay_folder(), sites, lambda messages: self.ask(messages, abort_signal, fl_ctx))
        for line in lines_of(done):
            self.log_info(fl_ctx, line)

    def process_result_of_unknown_task(
        self, client: Client, task_name: str, client_task_id: str, result: Shareable, fl_ctx: FLContext
    ) -> None:
        """As of `Controller`: an answer that came too late is asked for again in the next round."""

    def ask(self, messages: Mapping[str, Message], abort_signal: Signal, fl_ctx: FLContext) -> dict[str, Message]:
        """Messages to sites, and the answers of those who gave one."""
        answers: dict[str, Message] = {}

        def keep(client_task: ClientTask, fl_ctx: FLContext) -> None:
            result, client_task.result = client_task.result, None  # NVFlare would keep all pieces until the job ends
            if result.get_return_code() == ReturnCode.OK and isinstance(result.get(KEY), dict):
                answers[client_task.client.name] = result[KEY]

        tasks = []
        for site, message in messages.items():
            data = Shareable()
            data[KEY] = dict(message)
            tasks.append(Task(TASK, data, timeout=self.seconds, result_received_cb=keep))
            self.send(tasks[-1], fl_ctx, targets=[site])
        while any(task.completion_status is None for task in tasks) and not abort_signal.triggered:
            time.sleep(0.1)
        return answers


def lines_of(done: Relayed) -> list[str]:
    """What a round came to, for the job's log."""
    came = [f"{member or 'relay'}: {number} files came" for member, number in done.came.items()]
    silent = [f"{member} did not answer; run it again when it is there" for member in done.silent]
    refused = [f"{member or 'relay'}: refused: {code}" for member, codes in done.refused.items() for code in codes]
    return [*came, *silent, *refused]


def party_folder(site: str) -> Path:
    """The folder that the site's environment names; nothing that a job says can choose it."""
    if site in ("", ".", "..") or Path(site).name != site:
        raise ValueError(f"The site's name {site!r} cannot be part of a path.")
    return _folder(os.environ.get(PARTY_FOLDER, "").replace(SITE, site), PARTY_FOLDER)


def relay_folder() -> Path:
    """The folder of the analyst's side, which the server's environment names."""
    return _folder(os.environ.get(RELAY_FOLDER, ""), RELAY_FOLDER)


def _folder(given: str, variable: str) -> Path:
    if not given or not Path(given).is_dir():
        raise ValueError(f"{variable} names no folder that is there. Set it where NVFlare is started.")
    return Path(given)
