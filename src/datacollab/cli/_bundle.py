"""``datacollab bundle``: what a file holds, whether it is whole, and who has signed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..bundle import Bundle, PublicKey, bytes_to_arrays, is_encrypted, sealed_to, unpack
from ._output import Report, show_rows, shown


def inspect(report: Report, file: Path) -> None:
    bundle = unpack(file)
    members = {name: _described(name, data) for name, data in bundle.members.items()}
    _show_identity(file, bundle, report)
    report.facts |= {"facts": bundle.facts, "members": members}
    report.line("facts")
    show_rows([(shown(name), shown(value)) for name, value in _flat(bundle.facts).items()], report)
    report.line("members")
    for name, member in members.items():
        report.line(f"  {name}: {member['bytes']:,} bytes")
        for key, array in member.get("arrays", {}).items():
            report.line(f"    {shown(key)}: {' x '.join(map(str, array['shape'])) or 'one number'}, {array['dtype']}")
        for fingerprint in member.get("sealed_to", []):
            report.line(f"    sealed to {fingerprint}")
        if member.get("encrypted"):
            report.line("    under a passphrase")


def verify(report: Report, file: Path, signed_by: Path | None) -> None:
    key = None if signed_by is None else PublicKey.load(signed_by)
    bundle = unpack(file, signed_by=key)
    _show_identity(file, bundle, report)
    if key is not None:
        report.line(f"That is the key in {signed_by}.")
    elif bundle.signer is not None:
        report.line("Whose key that is, the file cannot say: compare the fingerprint, or give --signed-by.")


def _show_identity(file: Path, bundle: Bundle, report: Report) -> None:
    signer = None if bundle.signer is None else bundle.signer.fingerprint
    report.facts = {"kind": bundle.kind, "signer": signer, "digest": bundle.digest}
    report.line(f"{file}: {bundle.kind}, whole")
    report.line(f"signed by  {signer or 'nobody: anyone who carried it could have changed it'}")
    report.line(f"digest     {bundle.digest}")


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name facts within facts by names with dots."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        nested = isinstance(value, dict) and value
        flat |= _flat(value, f"{prefix}{name}.") if nested else {prefix + name: value}
    return flat


def _described(name: str, data: bytes) -> dict[str, Any]:
    described: dict[str, Any] = {"bytes": len(data)}
    if name.endswith(".safetensors"):
        arrays = bytes_to_arrays(data, what=name)
        described["arrays"] = {key: {"dtype": str(each.dtype), "shape": each.shape} for key, each in arrays.items()}
    elif name == "sealed.bin":
        described["sealed_to"] = sealed_to(data)
    elif is_encrypted(data):
        described["encrypted"] = True
    return described
