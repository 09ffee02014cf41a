"""``datacollab bundle``: the contents of a file, whether it is whole, and who has signed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..bundle import Bundle, bytes_to_arrays, is_encrypted, list_recipients, unpack
from ._command import load_key
from ._output import Report, one_line, show_rows


def inspect(report: Report, file: Path) -> None:
    bundle = unpack(file)
    members = {name: _describe(name, data) for name, data in bundle.members.items()}
    _show_identity(file, bundle, report)
    report.facts |= {"facts": bundle.facts, "members": members}
    report.line("facts")
    show_rows([(one_line(name), one_line(value)) for name, value in _flat(bundle.facts).items()], report)
    report.line("members")
    for name, member in members.items():
        report.line(f"  {name}: {member['bytes']:,} bytes")
        for key, array in member.get("arrays", {}).items():
            size = " x ".join(map(str, array["shape"])) or "one number"
            report.line(f"    {one_line(key)}: {size}, {array['dtype']}")
        for fingerprint in member.get("sealed_to", []):
            report.line(f"    sealed to {fingerprint}")
        if member.get("encrypted"):
            report.line("    under a passphrase")


def verify(report: Report, file: Path, signed_by: Path | None) -> None:
    key = load_key(signed_by)
    bundle = unpack(file, signed_by=key)
    _show_identity(file, bundle, report)
    if key is not None:
        report.line(f"That is the key in {signed_by}.")
    # Anybody can sign with a key of their own.
    elif bundle.signer is not None:
        report.line("Whose key that is, the file cannot say: compare the fingerprint, or give --signed-by.")


def _show_identity(file: Path, bundle: Bundle, report: Report) -> None:
    signer = bundle.signer and bundle.signer.fingerprint
    report.facts = {"kind": bundle.kind, "signer": signer, "digest": bundle.digest}
    report.line(f"{file}: {bundle.kind}, whole")
    report.line(f"signed by  {signer or 'nobody: anyone who carried it could have changed it'}")
    report.line(f"digest     {bundle.digest}")


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name facts within facts by names with dots."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _describe(name: str, data: bytes) -> dict[str, Any]:
    """Return facts on a member, which say nothing of its contents but sizes and readers."""
    facts: dict[str, Any] = {"bytes": len(data)}
    if name.endswith(".safetensors"):
        arrays = bytes_to_arrays(data, what=name)
        facts["arrays"] = {key: {"dtype": str(each.dtype), "shape": each.shape} for key, each in arrays.items()}
    elif name == "sealed.bin":
        facts["sealed_to"] = list_recipients(data)
    # A party's own state; without the passphrase there is nothing to see.
    elif is_encrypted(data):
        facts["encrypted"] = True
    return facts
