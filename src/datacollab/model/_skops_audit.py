"""What an outline says it would construct, checked before anything is constructed.

Skops asks for the types of an outline itself, but trusts more than a model of ours needs.  Here every node has to be of
a short list of kinds, of a short list of types, and of the form that skops gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import ExchangeError
from ._refusal import malformed, too_large
from ._skops_archive import MOST_BYTES, Archive
from ._tree_arrays import check_tree_arrays
from ._trusted_types import ARRAYS, FUNCTIONS, KEY_TYPES, LOSSES, TREE, trusted_objects

__all__ = ["audit"]

_PROTOCOL = 2
_MOST_DEPTH = 100
_MOST_NODES = 200_000
_MOST_TEXT = 10**5
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_MOST_NAME = 100

_FRAME = frozenset({"__class__", "__module__", "__loader__", "__id__"})
_ROOT = frozenset({"protocol", "_skops_version"})
_KEYS = {
    "DictNode": {"content", "key_types"},
    "FunctionNode": set(),
    "JsonNode": {"content", "is_json"},
    "ListNode": {"content"},
    "LossNode": {"content", "__reduce__"},
    "NdArrayNode": {"type", "file", "content", "shape"},
    "ObjectNode": {"content"},
    "SetNode": {"content"},
    "TreeNode": {"content", "__reduce__"},
    "TupleNode": {"content"},
    "TypeNode": set(),
}

Node = dict[str, Any]


def audit(archive: Archive) -> None:
    """Check that an outline constructs nothing but trusted types.

    Raises
    ------
    ExchangeError
        UNTRUSTED_TYPE naming the types, TOO_LARGE or MODEL_MALFORMED.
    """
    outline = archive.outline
    if outline.get("protocol") != _PROTOCOL or outline.get("__loader__") != "ObjectNode":
        raise malformed("its outline is not of the form known here, or of no estimator")
    untrusted: set[str] = set()
    known: dict[int, Node] = {}
    waiting: list[tuple[Any, int]] = [({key: value for key, value in outline.items() if key not in _ROOT}, 0)]
    n_nodes = n_bytes = 0
    while waiting:
        node, depth = waiting.pop()
        n_nodes += 1
        if depth > _MOST_DEPTH:
            raise malformed("its outline nests too deep")
        if n_nodes > _MOST_NODES:
            raise too_large(f"consists of more than {_MOST_NODES} parts")
        _check_frame(node)
        if _is_new(node, known):
            n_bytes += _size(node, archive)
        if n_bytes > MOST_BYTES:
            raise too_large(f"names its arrays so often that they take more than {MOST_BYTES} bytes")
        name = f"{node['__module__']}.{node['__class__']}"
        loader = node["__loader__"]
        if loader not in _KEYS or name not in _types(loader):
            untrusted.add(name)
            continue
        if not node.keys() <= _FRAME | _KEYS[loader]:
            raise malformed(f"a {loader} in its outline has entries that do not belong there")
        waiting.extend((child, depth + 1) for child in _CHILDREN[loader](node, archive))
    if untrusted:
        raise ExchangeError(
            "UNTRUSTED_TYPE",
            f"The model contains types that are not trusted: {_named(untrusted)}. Do not use it, and ask the analyst "
            "for one of scikit-learn's usual classifiers or regressors.",
        )


def _types(loader: str) -> frozenset[str]:
    return {
        "DictNode": frozenset({"builtins.dict", "sklearn.utils._bunch.Bunch"}),
        "FunctionNode": FUNCTIONS,
        "JsonNode": frozenset({"builtins.str"}),
        "ListNode": frozenset({"builtins.list"}),
        "LossNode": LOSSES,
        "NdArrayNode": ARRAYS,
        "SetNode": frozenset({"builtins.set"}),
        "TreeNode": frozenset({TREE}),
        "TupleNode": frozenset({"builtins.tuple"}),
        "TypeNode": KEY_TYPES,
    }.get(loader) or trusted_objects()


def _check_frame(node: Any) -> None:
    if not isinstance(node, dict) or not all(
        isinstance(node.get(key), str) for key in ("__class__", "__module__", "__loader__")
    ):
        raise malformed("an entry of its outline is no node")


def _size(node: Node, archive: Archive) -> int:
    file = node.get("file")
    array = archive.arrays.get(file) if isinstance(file, str) else None
    return 0 if array is None else array.nbytes


def _is_new(node: Node, known: dict[int, Node]) -> bool:
    """Whether skops makes another object of a node; one with a known number it takes for the one that it saw first.

    So the two must say the same.  Zero is no number to it.
    """
    number = node.get("__id__")
    if number is None:
        return True
    if type(number) is not int or number < 1:
        raise malformed("a node of its outline has an impossible number")
    is_new = number not in known
    if known.setdefault(number, node) != node:
        raise malformed("two different nodes of its outline have one number")
    return is_new


def _listed(node: Node, archive: Archive) -> Iterator[Any]:
    content = node.get("content")
    if not isinstance(content, list):
        raise malformed("a sequence in its outline is none")
    yield from content


def _dict(node: Node, archive: Archive) -> Iterator[Any]:
    content, key_types = node.get("content"), node.get("key_types")
    if not isinstance(content, dict) or not isinstance(key_types, dict) or key_types.get("__loader__") != "ListNode":
        raise malformed("a mapping in its outline is none")
    types = key_types.get("content")
    # Skops leaves out entries without a type.
    if not isinstance(types, list) or len(types) != len(content) or not all(map(_is_type, types)):
        raise malformed("the keys of a mapping in its outline have no types")
    yield key_types
    yield from content.values()


def _is_type(node: Any) -> bool:
    return isinstance(node, dict) and node.get("__loader__") == "TypeNode"


def _object(node: Node, archive: Archive) -> Iterator[Any]:
    content = node.get("content")
    if content is None:
        return
    if not isinstance(content, dict):
        raise malformed("the attributes of an object are no mapping")
    without = content.get("__loader__") == "JsonNode" and content.get("content") == "null"
    if not without and (content.get("__loader__") != "DictNode" or content.get("__class__") != "dict"):
        raise malformed("the attributes of an object are no mapping")
    if not without and any(str(name).startswith("__") for name in content.get("content", ())):
        raise malformed("an object has attributes with names that Python reserves")
    yield content


def _array(node: Node, archive: Archive) -> Iterator[Any]:
    if node.get("type") == "numpy":
        _stored(node, archive)
        return
    # Arrays of objects: their items one by one, and the shape.
    shape = node.get("shape")
    if node.get("type") != "json" or node["__class__"] != "ndarray" or not isinstance(shape, dict):
        raise malformed("an array in its outline is neither stored nor listed")
    if shape.get("__loader__") != "TupleNode":
        raise malformed("an array in its outline has no shape")
    yield shape
    yield from _listed(node, archive)


def _json(node: Node, archive: Archive) -> Iterator[Any]:
    content = node.get("content")
    if not isinstance(content, str) or len(content) > _MOST_TEXT:
        raise malformed("a value in its outline is no short text")
    return iter(())


def _leaf(node: Node, archive: Archive) -> Iterator[Any]:
    return iter(())


def _loss(node: Node, archive: Archive) -> Iterator[Any]:
    content = node.get("content")
    if not isinstance(content, dict) or content.get("content"):
        raise malformed("a loss in its outline has a state")
    for argument in _arguments(node):
        if not isinstance(argument, dict) or argument.get("__loader__") not in ("JsonNode", "NdArrayNode"):
            raise malformed("a loss in its outline is made from something other than numbers")
    yield node["__reduce__"]["args"]
    yield content


def _tree(node: Node, archive: Archive) -> Iterator[Any]:
    """A tree makes room, and reads an array, by what it is told; so all of it is checked first."""
    arguments, content = _arguments(node), node.get("content")
    if len(arguments) != 3 or not isinstance(content, dict) or content.get("__loader__") != "DictNode":
        raise malformed("a tree in its outline is none")
    state = content.get("content")
    if not isinstance(state, dict) or state.keys() != {"max_depth", "node_count", "nodes", "values"}:
        raise malformed("a tree in its outline has other parts than trees have")
    check_tree_arrays(
        n_features=_number(arguments[0]),
        n_classes=_stored(arguments[1], archive),
        n_outputs=_number(arguments[2]),
        max_depth=_number(state["max_depth"]),
        node_count=_number(state["node_count"]),
        nodes=_stored(state["nodes"], archive),
        values=_stored(state["values"], archive),
    )
    yield node["__reduce__"]["args"]
    yield content


def _arguments(node: Node) -> list[Any]:
    reduced = node.get("__reduce__")
    arguments = reduced.get("args") if isinstance(reduced, dict) and reduced.keys() == {"args"} else None
    if not isinstance(arguments, dict) or arguments.get("__loader__") != "TupleNode":
        raise malformed("a part of its outline is made from nothing")
    content = arguments.get("content")
    if not isinstance(content, list):
        raise malformed("a part of its outline is made from nothing")
    return content


def _number(node: Any) -> int:
    text = node.get("content") if isinstance(node, dict) and node.get("__loader__") == "JsonNode" else None
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 12:
        raise malformed("a tree in its outline lacks a whole number")
    return int(text)


def _stored(node: Any, archive: Archive) -> Any:
    file = node.get("file") if isinstance(node, dict) and node.get("__loader__") == "NdArrayNode" else None
    array = archive.arrays.get(file) if isinstance(file, str) and node.get("type") == "numpy" else None
    if array is None:
        raise malformed("an array in its outline is not in the archive")
    if node.get("__class__") != "ndarray" and array.ndim:
        raise malformed("a number in its outline is an array")
    return array


_CHILDREN: dict[str, Callable[[Node, Archive], Iterator[Any]]] = {
    "DictNode": _dict,
    "FunctionNode": _leaf,
    "JsonNode": _json,
    "ListNode": _listed,
    "LossNode": _loss,
    "NdArrayNode": _array,
    "ObjectNode": _object,
    "SetNode": _listed,
    "TreeNode": _tree,
    "TupleNode": _listed,
    "TypeNode": _leaf,
}


def _named(types: set[str]) -> str:
    """The types as far as they have names; any other text in a stranger's file is not repeated."""
    shown = sorted(name for name in types if len(name) <= _MOST_NAME and _NAME.fullmatch(name))
    shown += ["a name that is none"] * (len(shown) < len(types))
    return ", ".join(shown[:5]) + (f" and {len(types) - 5} more" if len(types) > 5 else "")
