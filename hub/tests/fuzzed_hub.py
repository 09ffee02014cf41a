"""A hub with two projects, what its API takes as an OpenAPI document, and who may have what there."""

from dataclasses import dataclass

from datacollab.bundle import digest, key_with_proof
from datacollab_hub.rules import KINDS, ROUTES, Role
from datacollab_hub.store import allow_key
from datacollab_hub.web import _bodies as bodies
from hub_world import FINGERPRINTS, KEYS, World, bundle

PEOPLE = ("owner", "north", "south", "analyst", "auditor", "other", "second", "stranger")
"""Besides those of the project: a party and the owner of another one, whose key may open more; and nobody."""
ROLES = {
    "owner": {Role.OWNER},
    "north": {Role.PARTY},
    "south": {Role.PARTY},
    "analyst": {Role.ANALYST},
    "auditor": {Role.AUDITOR},
}
ROLES_THERE = {"second": {Role.OWNER}, "other": {Role.PARTY}}
SENT = {
    "share": ("south", bundle("share", "south", party="south"), None, {"south", "analyst"}),
    "model": ("analyst", bundle("model", "analyst", party="north"), "north", {"analyst", "north"}),
    "anchor": ("owner", bundle("anchor", "owner"), None, {"owner", "north", "south"}),
}
"""Of each file: from whom, its bytes, for whom, and who may read it."""
READERS = {digest(data): readers for _, data, _, readers in SENT.values()}
SENDERS = {digest(data): sender for sender, data, _, _ in SENT.values()}
BEGUN = bundle("share", "north", party="north")

API = [route for route in ROUTES if not route.is_page]
"""Pages are for browsers, which sign nothing."""

SUCCESSES = {
    ("POST", "/v1/sessions"): {201},
    ("POST", "/v1/projects"): {201},
    ("POST", "/v1/projects/{project}/invitations"): {201},
    ("POST", "/v1/projects/{project}/join"): {202},
    ("PUT", "/v1/projects/{project}/agreement"): {200, 201},
    ("POST", "/v1/projects/{project}/uploads"): {200, 201},
    ("PATCH", "/v1/projects/{project}/uploads/{upload}"): {201, 204},
    ("DELETE", "/v1/projects/{project}/uploads/{upload}"): {204},
    ("GET", "/v1/projects/{project}/files/{sha256}"): {200, 206},
}
"""As docs/hub.md says; 200 of all others."""
REFUSALS = (400, 401, 403, 404, 405, 409, 413, 416, 422, 429)
JSON_BODIES = {
    "/v1/sessions": bodies.Nothing,
    "/v1/projects": bodies.NewProject,
    "/v1/projects/{project}/invitations": bodies.Invitation,
    "/v1/projects/{project}/join": bodies.Joining,
    "/v1/projects/{project}/requests/{fingerprint}": bodies.Approval,
    "/v1/projects/{project}/uploads": bodies.Starting,
}
REFUSAL = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": "^[A-Z_]+$"}, "message": {"type": "string", "minLength": 1}},
    "required": ["code", "message"],
    "additionalProperties": False,
}


@dataclass
class Fuzzed:
    """The world, and what is there to be named."""

    world: World
    there: str
    upload: str
    secret: str

    @property
    def project(self):
        return self.world.project


def make_fuzzed(world):
    """Two projects: in the first a project file, three files and an upload that has begun."""
    KEYS.setdefault("second", type(KEYS["owner"]).generate())
    FINGERPRINTS["second"] = KEYS["second"].public.fingerprint
    with world.store.writing() as connection:
        allow_key(connection, KEYS["second"].public, world.now)
    there = world.ask("second", "POST", "/v1/projects", {"name": "others"}).json()["project"]
    said = world.ask(
        "second", "POST", f"/v1/projects/{there}/invitations", {"name": "x", "role": "party", "days": 1}
    ).json()
    joining = {"secret": said["link"].partition("#")[2], "public_key": key_with_proof(KEYS["other"])}
    assert world.ask("other", "POST", f"/v1/projects/{there}/join", joining).status_code == 202
    approving = f"/v1/projects/{there}/requests/{FINGERPRINTS['other']}"
    assert world.ask("second", "POST", approving, {"approve": True}).status_code == 200
    world.open_project()
    world.put_agreement()
    world.admit("auditor")
    for kind, (sender, data, recipient, _) in SENT.items():
        assert world.send(sender, kind, data, recipient).status_code == 201
    upload = world.start("north", "share", BEGUN).json()["upload"]
    return Fuzzed(world, there, upload, world.invite("auditor", "stranger"))


def described(fuzzed):
    """The app's own OpenAPI document, with what it reads by hand: bodies, answers, and names that are there."""
    schema, names = fuzzed.world.client.app.openapi(), named(fuzzed)
    for route in API:
        operation = schema["paths"][route.path][route.method.lower()]
        for parameter in operation.get("parameters", ()):
            known = {"enum": names[parameter["name"].lower()]}
            parameter["schema"] = {"anyOf": [known, known, parameter["schema"]]}
        model = JSON_BODIES.get(route.path) if route.method == "POST" else None
        if model is not None:
            content = {"application/json": {"schema": _named(model.model_json_schema())}}
            operation["requestBody"] = {"content": content, "required": True}
        operation["responses"] = _answers(route)
    return schema


def named(fuzzed):
    """What a path, a query or a header may name."""
    return {
        "project": [fuzzed.project] * 8 + [fuzzed.there, "0" * 32],
        "upload": [fuzzed.upload] * 3 + ["0" * 32],
        "sha256": [*READERS, "0" * 64],
        "fingerprint": [FINGERPRINTS["auditor"]] * 6 + list(FINGERPRINTS.values()),
        "after": [0, 1, 2**31 - 1, 2**31],
        "upload-offset": ["0"] * 3 + ["400"] * 3 + [str(len(BEGUN)), "-1", "1" * 30],
        "range": ["bytes=0-9"] * 3 + ["bytes=-1", "bytes=99999-", "bytes=9-1", "bytes=0-1,3-4", "x"],
    }


def right_bodies(fuzzed):
    """Bodies that say what they should, by route."""
    at = "/v1/projects/{project}"
    hostile = ["heart", "<script>alert(1)</script>", "a\r\nSet-Cookie: x=1", "../../etc", "\N{RIGHT-TO-LEFT OVERRIDE}x"]
    announced = [
        {"kind": kind, "sha256": digest(data), "size": len(data)} | ({"recipient": to} if to else {})
        for kind, (_, data, to, _) in (SENT | {"begun": ("north", BEGUN, None, ())}).items()
        for kind in ([kind] if kind in SENT else ["share", "sums"])
    ]
    found = {
        ("POST", "/v1/sessions"): [{}],
        ("POST", "/v1/projects"): [{"name": name} for name in hostile],
        ("POST", f"{at}/invitations"): [{"name": name, "role": "auditor", "days": 1} for name in hostile],
        ("POST", f"{at}/join"): [
            {"secret": fuzzed.secret, "public_key": key_with_proof(KEYS[name])}
            for name in ("stranger", "other", "north")
        ],
        ("POST", f"{at}/requests/{{fingerprint}}"): [{"approve": True}, {"approve": False}],
        ("POST", f"{at}/uploads"): announced,
    }
    return found


def fitting(route):
    """People of the first project whom a route is for."""
    if route.path.endswith("{upload}"):
        return ["north"]
    roles = {name: ROLES.get(name, set()) | {Role.KNOWN} for name in ("owner", "north", "south", "analyst", "auditor")}
    found = [name for name, own in roles.items() if own & route.roles]
    return found or (["owner"] if Role.OPENER in route.roles else ["stranger"])


def _answers(route):
    refusal = {"description": "", "content": {"application/json": {"schema": REFUSAL}}}
    if route.method == "HEAD":
        refusal = {"description": ""}
    good = SUCCESSES.get((route.method, route.path), {200})
    answers = {str(status): {"description": ""} for status in good}
    refusals = {str(status): refusal for status in REFUSALS}
    return answers | refusals | {"416": {"description": ""}, "503": {"description": ""}}


def _named(schema):
    """A body's schema, in which words that mean something come up by themselves."""
    words = {
        "kind": [*KINDS],
        "role": ["party", "analyst", "auditor", "owner"],
        "sha256": [digest(BEGUN), *READERS],
        "size": [1, len(BEGUN), 2**50],
        "recipient": ["north", "south", FINGERPRINTS["north"], None],
        "public_key": [key_with_proof(KEYS[name]) for name in PEOPLE],
        "name": [
            "heart",
            "<script>alert(1)</script>",
            "a\r\nSet-Cookie: x=1",
            "../../etc",
            "\N{RIGHT-TO-LEFT OVERRIDE}x",
            "x" * 201,
        ],
    }
    for name, wanted in schema.get("properties", {}).items():
        if name in words:
            schema["properties"][name] = {"anyOf": [{"enum": words[name]}, wanted]}
    return schema


def may(fuzzed, who, route, parameters):
    """Whether a route may do something for somebody, by the documents; strangers may join with an invitation."""
    if Role.ANYBODY in route.roles:
        return True
    if who is None:
        return False
    if Role.INVITED in route.roles:
        return True
    project = parameters.get("project")
    roles = {fuzzed.project: ROLES, fuzzed.there: ROLES_THERE}.get(project, {}).get(who, set())
    roles = (
        roles
        | (set() if who == "stranger" else {Role.KNOWN})
        | ({Role.OPENER} if who in ("owner", "second") else set())
    )
    if not roles & route.roles:
        return False
    if "upload" in parameters and project == fuzzed.project:
        return parameters["upload"] != fuzzed.upload or who == "north"
    if route.path.endswith("{sha256}") and project == fuzzed.project:
        found = parameters["sha256"]
        named = {SENDERS.get(found)} if route.method == "DELETE" else READERS.get(found, set())
        return who in named or found not in READERS
    return True
