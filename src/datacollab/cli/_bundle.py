"""``datacollab bundle``: what a file holds, whether it is whole and from whom, and how two files differ."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._help import group
from ._output import Report, reported, shown

if TYPE_CHECKING:
    from ..bundle import Bundle

__all__ = ["app"]

app = group("Bundles: the files that cross, .dcshare, .dcsum, .dcmodel, .dcanswers and .dcanchor.")

DIFFERENT = 3
"""Exit code of `diff` where the files differ."""

File = Annotated[Path, typer.Argument(help="A bundle.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
KeyFile = partial(typer.Option, metavar="PUBLIC.KEY")


@app.command("inspect")
def inspect(file: File, as_json: AsJson = False) -> None:
    """Show all that a file says and holds, after verifying it: facts, members, and the shapes of arrays.

    Of what is sealed only the size is visible, and the fingerprints of the keys that open it.

    Example: datacollab bundle inspect hospital-a/outbox/a.dcshare
    """
    with reported(as_json) as report:
        from ..bundle import unpack

        bundle = unpack(file)
        members = {name: _described(name, data) for name, data in bundle.members.items()}
        report.facts = {**_identity(bundle), "facts": bundle.facts, "members": members}
        _show_identity(file, bundle, report)
        _show_facts(bundle.facts, report)
        report.line("members")
        for name, member in members.items():
            _show_member(name, member, report)


@app.command("verify")
def verify(
    file: File,
    signed_by: Annotated[
        Path | None, KeyFile(help="Public key of whoever has to have signed it.", exists=True, dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a file is whole, and that its signature is valid; exit with 11 otherwise.

    Example: datacollab bundle verify a.dcshare --signed-by a/public.key
    """
    with reported(as_json) as report:
        from ..bundle import PublicKey, unpack

        key = None if signed_by is None else PublicKey.load(signed_by)
        bundle = unpack(file, signed_by=key)
        report.facts = _identity(bundle)
        _show_identity(file, bundle, report)
        if key is not None:
            report.line(f"That is the key in {signed_by}.")
        elif bundle.signer is not None:
            report.line("Whose key that is, the file cannot say: compare the fingerprint, or give --signed-by.")


@app.command("diff")
def diff(a: File, b: File, as_json: AsJson = False) -> None:
    """Say in which facts and members two files differ; exit with 3 where they do.

    Example: datacollab bundle diff old.dcshare new.dcshare
    """
    with reported(as_json) as report:
        from ..bundle import unpack

        first, second = unpack(a), unpack(b)
        facts = _different(_flat(_headed(first)), _flat(_headed(second)))
        members = _different(_members(first), _members(second))
        report.facts = {"equal": not (facts or members), "facts": facts, "members": members}
        for title, rows in (("facts", facts), ("members", members)):
            for row in rows:
                report.line(f"{title[:-1]} {shown(row['name'])}: {shown(row['a'])} | {shown(row['b'])}")
        if not (facts or members):
            report.line("The files hold the same.")
    if facts or members:
        raise typer.Exit(DIFFERENT)


def _identity(bundle: Bundle) -> dict[str, Any]:
    return {
        "kind": bundle.kind,
        "signer": None if bundle.signer is None else bundle.signer.fingerprint,
        "digest": bundle.digest,
    }


def _headed(bundle: Bundle) -> dict[str, Any]:
    """What is compared besides the members; the digest differs whenever anything else does."""
    return {**bundle.facts, "(bundle)": {**_identity(bundle), "digest": None}}


def _members(bundle: Bundle) -> dict[str, str]:
    from ..bundle import digest

    return {name: f"{len(data):,} bytes, sha256 {digest(data)}" for name, data in bundle.members.items()}


def _different(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    names = sorted(a.keys() | b.keys())
    missing = "(nothing)"
    pairs = [(name, a.get(name, missing), b.get(name, missing)) for name in names]
    return [{"name": name, "a": old, "b": new} for name, old, new in pairs if (type(old), old) != (type(new), new)]


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Facts within facts by names with dots."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _described(name: str, data: bytes) -> dict[str, Any]:
    from ..bundle import bytes_to_arrays, is_encrypted, sealed_to

    described: dict[str, Any] = {"bytes": len(data)}
    if name.endswith(".safetensors"):
        arrays = bytes_to_arrays(data, what=name)
        described["arrays"] = {key: {"dtype": str(each.dtype), "shape": each.shape} for key, each in arrays.items()}
    elif name == "sealed.bin":
        described["sealed_to"] = sealed_to(data)
    elif is_encrypted(data):
        described["encrypted"] = True
    return described


def _show_identity(file: Path, bundle: Bundle, report: Report) -> None:
    signer = "nobody: whoever carried it could have changed it" if bundle.signer is None else bundle.signer.fingerprint
    report.line(f"{file}: {bundle.kind}, whole")
    report.line(f"signed by  {signer}")
    report.line(f"digest     {bundle.digest}")


def _show_facts(facts: dict[str, Any], report: Report) -> None:
    flat = _flat(facts)
    width = max((len(shown(name)) for name in flat), default=0)
    report.line("facts")
    for name, value in flat.items():
        report.line(f"  {shown(name):<{width}}  {shown(value)}")


def _show_member(name: str, member: dict[str, Any], report: Report) -> None:
    report.line(f"  {name}: {member['bytes']:,} bytes")
    for key, array in member.get("arrays", {}).items():
        report.line(f"    {shown(key)}: {' x '.join(map(str, array['shape'])) or 'one number'}, {array['dtype']}")
    for fingerprint in member.get("sealed_to", []):
        report.line(f"    sealed to {fingerprint}")
    if member.get("encrypted"):
        report.line("    under a passphrase")
