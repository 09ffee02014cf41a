"""Requests signed as docs/hub.md says, by one format string: the client shares two cores with what it measures."""

from __future__ import annotations

import base64
import hashlib

from datacollab.bundle import KeyPair

__all__ = ["signature_lines"]

_TAG = "datacollab-hub-1"
_COVERED = '"@method" "@authority" "@path" "@query"'


def signature_lines(
    method: str, authority: str, path: str, body: bytes, key: KeyPair, *, fingerprint: str, created: int, nonce: str
) -> str:
    """Lines of the head that sign a request of which the address has no query.

    Parameters
    ----------
    method, authority, path : str
    body : bytes
    key : KeyPair
    fingerprint : str
        The key's; to make it anew each time would cost as much as the signature.
    created : int
        Seconds since 1970.
    nonce : str

    Returns
    -------
    str
        Each line with its end.
    """
    covered, base, lines = (
        _COVERED,
        f'"@method": {method}\n"@authority": {authority}\n"@path": {path}\n"@query": ?\n',
        "",
    )
    if body:
        digest = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
        covered += ' "content-digest"'
        base += f'"content-digest": {digest}\n'
        lines = f"Content-Digest: {digest}\r\n"
    said = f'({covered});created={created};keyid="{fingerprint}";alg="ed25519";nonce="{nonce}";tag="{_TAG}"'
    signature = base64.b64encode(key.sign(f'{base}"@signature-params": {said}'.encode())).decode()
    return f"{lines}Signature-Input: datacollab={said}\r\nSignature: datacollab=:{signature}:\r\n"
