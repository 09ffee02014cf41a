"""That who sends a public key holds its signing half, and means this sealing half to be theirs."""

from __future__ import annotations

from ._key_pair import KeyPair
from ._public_key import PROOF_PREFIX
from ._spelling import letters_of

__all__ = ["key_with_proof"]


def key_with_proof(pair: KeyPair) -> str:
    """The text of ``public.key``: the public key, and a signature by its signing half over both halves.

    Without it somebody could put another's signing half and a sealing half of their own together, and have read what
    is sealed for the other.  That they hold the sealing half as well, it does not prove: who opens a seal does.
    """
    signature = pair.sign(pair.public.proof_statement)
    return f"{pair.public.text}\n{PROOF_PREFIX}{letters_of(signature)}\n"
