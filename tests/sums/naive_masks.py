"""Masked messages by someone who has read the page of formats alone: integers, one at a time."""

import hashlib
import hmac
import json

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20


def public_of(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def context_of(agreed):
    text = json.dumps(agreed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"datacollab sums 1 context\n" + text.encode()).digest()


def hkdf(shared, salt, info):
    """RFC 5869, for 64 bytes."""
    key = hmac.digest(salt, shared, "sha256")
    first = hmac.digest(key, info + b"\x01", "sha256")
    return first + hmac.digest(key, first + info + b"\x02", "sha256")


def message_of(name, values, secrets, agreed):
    """A party's integers, without noise, and its tags."""
    context, own = context_of(agreed), public_of(secrets[name])
    ring, width = 2 ** agreed["bits"], agreed["bits"] // 8
    integers = [round(value * 2 ** agreed["fraction_bits"]) % ring for value in [1, *values]]
    tags = {}
    for other, secret in secrets.items():
        if other == name:
            continue
        theirs = public_of(secret)
        shared = X25519PrivateKey.from_private_bytes(secrets[name]).exchange(X25519PublicKey.from_public_bytes(theirs))
        derived = hkdf(shared, context, b"datacollab sums 1 pair\n" + min(own, theirs) + max(own, theirs))
        tags[other] = derived[32:]
        stream = Cipher(ChaCha20(derived[:32], bytes(16)), mode=None).encryptor().update(bytes(width * len(integers)))
        sign = 1 if own < theirs else -1
        integers = [
            (integer + sign * int.from_bytes(stream[width * i : width * (i + 1)], "little")) % ring
            for i, integer in enumerate(integers)
        ]
    return integers, tags
