"""The common part of a folder and a hub: signed requests (RFC 9421), and the hub's log."""

from ._chain import LOG_START, check_hub_log, hub_entry
from ._signing import CLOCK_WINDOW, sign_request
from ._verifying import Verified, check_body, check_signed, verify_head, verify_request

__all__ = ["CLOCK_WINDOW", "LOG_START", "Verified", "check_body", "check_hub_log", "check_signed", "hub_entry"]
__all__ += ["sign_request", "verify_head", "verify_request"]
