"""Codes of refusals that only a hub and its members know."""

from __future__ import annotations

from datacollab.plugins import Code, add_codes

CODES = {
    "KEY_UNKNOWN": Code(
        "keys",
        "A hub does not know the key that signed a request.",
        "Join a project with its invitation, or ask the hub's operator to allow the key.",
    ),
    "NOT_SIGNED_IN": Code(
        "keys",
        "A browser is not signed in to a hub's pages, or not any more.",
        "Run `datacollab remote dashboard`, and open its link.",
    ),
    "NOT_ALLOWED": Code("keys", "A role may not do this in a hub's project.", "Ask the project's owner to do it."),
    "INVITATION_INVALID": Code(
        "keys", "An invitation was used, has expired, or is none.", "Ask the project's owner for another."
    ),
    "CLOCK_SKEW": Code(
        "verification",
        "The clocks of who asks and who answers differ too much.",
        "Set the clock of the machine that asks, then ask again.",
    ),
    "REPLAYED": Code(
        "verification", "A signed request came a second time.", "Make the request again; each is signed anew."
    ),
    "WITHHELD": Code(
        "verification",
        "A hub does not give what its own log says is there, or says another thing than the project file.",
        "Have it sent another way; ask the hub's operator.",
    ),
    "QUOTA_EXCEEDED": Code(
        "policy", "A project, or a key, has as much on a hub as it may have.", "Withdraw files, or ask the operator."
    ),
    "REQUEST_MALFORMED": Code(
        "schema", "A request to a hub says something impossible.", "Correct the named entry, or upgrade datacollab."
    ),
    "AGREEMENT_MISSING": Code(
        "state", "A hub's project has no project file yet.", "Let the owner send it with `datacollab remote push`."
    ),
    "OFFSET_DIFFERS": Code(
        "state", "A part of a file does not follow the part that a hub has.", "Go on where the hub says."
    ),
    "DATABASE_OUTDATED": Code(
        "state", "A hub's database is of another version of the program.", "Run `datacollab hub db upgrade`."
    ),
    "STORE_MISMATCH": Code(
        "state",
        "A hub's database and its place of blobs do not belong together.",
        "Give both of one hub; to begin anew or to restore, give an empty place for blobs.",
    ),
    "TOO_MANY_REQUESTS": Code("limits", "A key asks a hub too often.", "Wait as long as the answer says."),
    "TOO_SLOW": Code(
        "limits", "A request's body came to a hub too slowly.", "Send it again, by a faster line or in smaller parts."
    ),
    "STORE_FULL": Code("limits", "A hub's disk is full.", "Ask its operator for more room; then go on."),
    "REMOTE_REFUSED": Code(
        "remote", "A hub refuses, or answers what no hub answers.", "Read what it says; ask its operator."
    ),
    "TLS_UNTRUSTED": Code(
        "remote",
        "A hub's certificate is not signed by anybody that this machine trusts.",
        "Ask the hub's operator for the certificate, and add the remote with --ca.",
    ),
}
"""By their names, beside those of `datacollab`."""

# On import, so that a member's program explains a hub's refusals as its own.
add_codes(CODES)
