"""Changes of what crosses, made by somebody who can hash and sign it again: run as a program."""

import copy
import io
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import tomli_w

from datacollab import PartyModel, Share
from datacollab.agreement import (
    Anchor,
    AnchorRecipe,
    Project,
    Task,
    anchor_from_bytes,
    anchor_to_bytes,
    load_project,
    project_text,
    sign_project_text,
)
from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, pack, seal, unpack, unseal
from datacollab.errors import ExchangeError
from datacollab.model import LinearMap
from datacollab.share import share_contents, share_from
from datacollab.sums import MASKED_SUM_KIND, MaskedSum, MaskKey, message_to_bytes, read_message
from datacollab.table import Column, read_table

NUMBERS = [0, 1, -1, 2, 1e308, -1e308, 2**31 - 1, -(2**31), 2**53, 10**30, 0.5, True, False]
WORDS = ["", "a", "=1+1", "no such word", "../../etc/passwd", "\u202e", "x" * 5000, [], {}, [[]], {"a": {}}]
SHAPES = [(), (0,), (1,), (3,), (1, 1), (4, 1), (0, 4), (100_000,), (1, 1, 1)]
PROJECT_KEYS = [KeyPair.generate() for _ in range(3)]


def places(content, path=()):
    """Ways to every entry of nested content."""
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def change_entry(content, generator):
    """Take an entry away, write it twice, put another in its place, or give it another name."""
    ways = [way for way in places(content) if way]
    path = ways[generator.integers(len(ways))]
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    change = generator.integers(4)
    if change == 0:
        del holder[path[-1]]
    elif change == 1 and isinstance(holder, list):
        holder.insert(path[-1], copy.deepcopy(holder[path[-1]]))
    elif change == 2 and isinstance(holder, dict):
        holder[str(generator.choice(["x", "a b", "kind", "rows", "\x1b[2J"]))] = holder.pop(path[-1])
    else:
        pool = NUMBERS if generator.random() < 0.5 else WORDS
        holder[path[-1]] = copy.deepcopy(pool[generator.integers(len(pool))])


def change_array(arrays, generator):
    """Another shape, type, order, name, or entry."""
    name = sorted(arrays)[generator.integers(len(arrays))]
    kind = generator.integers(6)
    if kind == 0:
        arrays.pop(name)
    elif kind == 1:
        arrays["other"] = arrays.pop(name)
    elif kind == 2:
        arrays[name] = np.zeros(SHAPES[generator.integers(len(SHAPES))], dtype=arrays[name].dtype)
    elif kind == 3:
        arrays[name] = arrays[name].astype(generator.choice(["float32", "float64", "int32", "int64", "bool"]))
    elif kind == 4:
        arrays[name] = arrays[name][: generator.integers(len(arrays[name]) + 1)] if arrays[name].ndim else arrays[name]
    else:
        changed = arrays[name].copy()
        value = np.float64([np.nan, np.inf, 1e308, -1, 2**31, 7][generator.integers(6)])
        with np.errstate(all="ignore"):
            changed.flat[generator.integers(changed.size)] = value.astype(changed.dtype)
        arrays[name] = changed


def change_bytes(data, generator):
    """Flip a bit, write a telling number, cut, or repeat a piece."""
    raw = bytearray(data)
    start = int(generator.integers(len(raw)))
    kind = generator.integers(4)
    if kind == 0:
        raw[start] ^= 1 << int(generator.integers(8))
    elif kind == 1:
        word = np.int64([0, -1, 2**31 - 1, -(2**31), 2**40, 2**62][generator.integers(6)]).tobytes()
        raw[start : start + 8] = word[: len(raw) - start]
    elif kind == 2:
        del raw[start : start + int(generator.integers(1, 64))]
    else:
        raw[start:start] = raw[start : start + int(generator.integers(1, 64))]
    return bytes(raw)


def bundle_mutants(kind, facts, members, read, generator):
    """Of a bundle: facts, arrays, or any byte of the file."""
    whole = pack(kind, facts, members, key=PROJECT_KEYS[0])
    while True:
        changed, held = copy.deepcopy(facts), dict(members)
        way = generator.random()
        if way < 0.4:
            change_entry(changed, generator)
        elif way < 0.8:
            name = sorted(held)[generator.integers(len(held))]
            arrays = bytes_to_arrays(held[name], what=name)
            change_array(arrays, generator)
            held[name] = arrays_to_bytes(arrays)
        else:
            data = change_bytes(whole, generator)
            yield lambda data=data: read(unpack(data, kind=kind))
            continue
        yield lambda changed=changed, held=held: read(Bundle(kind, changed, held, None, ""))


def shares(generator):
    rows = np.random.default_rng(0).normal(size=(12, 3))
    share = Share(
        party="north",
        representation=rows,
        anchor_representation=rows[:7],
        target=np.array(["a", "b", "c"] * 4),
        anchor_target=np.array(["a"] * 7),
    )
    return bundle_mutants("datacollab.share", *share_contents(share), share_from, generator)


def masked_sums(generator):
    key, analyst = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
    keys = {name: MaskKey(bytes([place]) * 32) for place, name in enumerate(("north", "south", "west"), 1)}
    agreed = MaskedSum({"run": 1}, {name: each.public for name, each in keys.items()}, noise=np.full(5, 0.1))
    witness = np.arange(8, dtype=np.uint64)
    message = agreed.mask("north", np.arange(5.0), keys["north"], witness=witness)
    outer = unpack(message_to_bytes(message, key, analyst.public))
    purpose = f"masked sum of north in {message.context.hex()}"
    inner = unpack(unseal(outer.members["sealed.bin"], analyst, purpose=purpose))

    def sealed(bundle):
        contents = seal(pack(bundle.kind, bundle.facts, bundle.members), [analyst.public], purpose=purpose)
        return pack(outer.kind, outer.facts, {"sealed.bin": contents}, key=key)

    def read(data):
        return read_message(data, analyst, signed_by=key.public)

    yield from bundle_mutants(MASKED_SUM_KIND, inner.facts, inner.members, lambda b: read(sealed(b)), generator)


def anchors(generator):
    rows = np.random.default_rng(0).normal(size=(9, 4))
    anchor = Anchor(rows=rows, target=np.array(["yes", "no", "a"] * 3), secret=b"s" * 32)
    kept = unpack(anchor_to_bytes(anchor))
    ((name, data),) = kept.members.items()
    while True:
        arrays = bytes_to_arrays(data, what=name)
        change_array(arrays, generator)
        changed = {name: arrays_to_bytes(arrays)}
        yield lambda changed=changed: anchor_from_bytes(pack(kept.kind, kept.facts, changed))


def models(generator):
    from sklearn.ensemble import RandomForestClassifier

    from datacollab.model import MODEL_KIND, model_contents, model_from

    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = PartyModel(
        party="north",
        integration_function=LinearMap("north", np.eye(3)),
        estimator=RandomForestClassifier(2, max_depth=3, random_state=0).fit(rows, (rows[:, 0] > 0).astype(int)),
    )
    return bundle_mutants(MODEL_KIND, *model_contents(model), lambda b: model_from(b).predict(rows), generator)


def answers(generator):
    from datacollab.model import PREDICTIONS_KIND, AnchorPredictions, predictions_contents, predictions_from

    values = np.random.default_rng(0).dirichlet(np.ones(3), size=12)
    made = AnchorPredictions(party="north", values=values, classes=np.array(["a", "b", "c"]))
    return bundle_mutants(PREDICTIONS_KIND, *predictions_contents(made), predictions_from, generator)


def project():
    owner, analyst, other = PROJECT_KEYS
    return Project(
        name="heart",
        purpose="Who is at risk?",
        columns=(
            Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
            Column(name="ward", kind="category", categories=("north", "south")),
            Column(name="dose", kind="number", unit="mg", minimum=-1, maximum=9.5, missing="fill", fill=2),
        ),
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="smote", n_rows=40, source="a register"),
        max_components=2,
        owner=owner.public,
        analyst=analyst.public,
        parties={"a": owner.public, "b": other.public},
    )


def projects(generator):
    import tomllib

    text = project_text(project(), PROJECT_KEYS[0])
    content = tomllib.loads(text)
    del content["signature"]
    file = Path(tempfile.mkdtemp()) / "project.toml"

    def read(data):
        file.write_bytes(data)
        return load_project(file)

    while True:
        changed = copy.deepcopy(content)
        if generator.random() < 0.3:
            data = change_bytes(text.encode(), generator)
            yield lambda data=data: read(data)
            continue
        for _ in range(generator.integers(1, 4)):
            change_entry(changed, generator)
        written = tomli_w.dumps(changed)
        # Signing refuses what is no project; what only a hostile owner would sign is written all the same.
        yield lambda written=written: read(sign_project_text(written, PROJECT_KEYS[0]).encode())


def tables(generator):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.integers(18, 97, 50),
            "ward": random.choice(["north", "south"], 50),
            "dose": np.where(random.random(50) < 0.2, np.nan, random.normal(4, 1, 50)),
            "ill": random.choice(["no", "yes"], 50),
        }
    )
    folder, files = Path(tempfile.mkdtemp()), {}
    for ending, write in (("csv", table.to_csv), ("parquet", table.to_parquet), ("feather", table.to_feather)):
        buffer = io.BytesIO()
        write(buffer) if ending == "feather" else write(buffer, index=False)
        files[ending] = buffer.getvalue()
    agreed = project()

    def read(ending, data):
        file = folder / f"table.{ending}"
        file.write_bytes(data)
        return read_table(file, schema=agreed)

    while True:
        ending = sorted(files)[generator.integers(3)]
        data = change_bytes(files[ending], generator)
        yield lambda ending=ending, data=data: read(ending, data)


KINDS = {
    "anchors": anchors,
    "answers": answers,
    "models": models,
    "projects": projects,
    "shares": shares,
    "masked sums": masked_sums,
    "tables": tables,
}


def outcomes(kind, n_mutants, seed):
    """How often each refusal was given, or "taken"; the longest time and the most memory; nothing else is caught."""
    generator = np.random.default_rng(seed)
    counts, longest = Counter(), 0.0
    before = None
    for _, attempt in zip(range(n_mutants), KINDS[kind](generator), strict=False):
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                attempt()
        except ExchangeError as error:
            counts[error.code] += 1
        else:
            counts["taken"] += 1
        longest = max(longest, time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"counts": counts, "longest_s": longest, "memory_mb": grown / 1024}


def main(n_mutants, seed, folder):
    """Write the outcomes of every kind to a file of its name, each by a child of this process, all at a time."""
    children = {}
    for kind in KINDS:
        child = os.fork()
        if child == 0:
            (folder / f"{kind}.json").write_text(json.dumps(outcomes(kind, n_mutants, seed)))
            os._exit(0)
        children[kind] = child
    for child in children.values():
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
