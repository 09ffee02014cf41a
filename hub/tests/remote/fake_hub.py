"""A hub in memory that follows the API, for faults that a real one does not have at will."""

import json
import secrets
import time

import httpx

from datacollab.bundle import PublicKey, digest, unpack
from datacollab.errors import ExchangeError
from datacollab.remote import project_of, read_address
from datacollab_hub.requests import LOG_START, hub_entry, verify_request

PIECE = 4 * 2**20


class FakeHub:
    """One hub; `fault` may raise or answer in place of any request, before or after it was done."""

    def __init__(self, *keys, now=time.time, prefix=""):
        self.keys = {key.fingerprint: key for key in keys}
        self.now, self.nonces, self.prefix = now, set(), prefix
        self.projects, self.links, self.asked = {}, {}, {}
        self.requests = []
        self.address = "https://hub.example"
        self.before = self.after = lambda request: None

    def transport(self):
        return httpx.MockTransport(self.handle)

    def handle(self, request):
        self.requests.append((request.method, request.url.path))
        said = self.before(request)
        if said is None:
            said = self._answer(request)
            said = self.after(request) or said
        return said

    def _answer(self, request):
        try:
            known = dict(self.keys)
            if request.url.path.endswith("/join"):
                presented = PublicKey.from_text(json.loads(request.content)["public_key"].split()[0])
                known[presented.fingerprint] = presented
            verified = verify_request(
                request.method, str(request.url), request.headers, request.content, known.get, self.now()
            )
            if verified.nonce in self.nonces:
                return refusal(401, "REPLAYED", "seen before")
            self.nonces.add(verified.nonce)
            return self._route(request, verified.key)
        except ExchangeError as error:
            return refusal(401 if error.code in ("CLOCK_SKEW", "KEY_UNKNOWN") else 422, error.code, str(error))

    def _route(self, request, who):
        parts = request.url.path.removeprefix(self.prefix).strip("/").split("/")[1:]
        if parts == ["projects"]:
            return self._projects(request, who)
        if parts == ["sessions"]:
            return answer(201, link=f"{self.address}/session/{'s' * 43}")
        room = self.projects.get(parts[1])
        rest = parts[2:]
        if room is None:
            return refusal(404, "NOT_FOUND", "nothing of this name")
        if rest == ["join"]:
            return room.join(json.loads(request.content), who, self)
        if who.fingerprint not in room.members:
            return refusal(404, "NOT_FOUND", "nothing of this name")
        name = "_".join([request.method, rest[0] if rest else "status", "one" if len(rest) > 1 else ""]).strip("_")
        return getattr(room, name)(request, who, *rest[1:])

    def _projects(self, request, who):
        if request.method == "POST":
            name = secrets.token_hex(16)
            self.projects[name] = Room(name, json.loads(request.content)["name"], who, self)
            return answer(201, project=name)
        there = [room for room in self.projects.values() if who.fingerprint in room.members]
        return answer(200, projects=[{"project": room.id, "name": room.name, "digest": room.digest} for room in there])


class Room:
    def __init__(self, room_id, name, owner, hub):
        self.id, self.name, self.owner, self.hub = room_id, name, owner, hub
        self.members, self.text, self.project = {owner.fingerprint: "owner"}, None, None
        self.files, self.uploads, self.log, self.asked, self.secrets = {}, {}, [], {}, {}
        self.write(owner.fingerprint, "opened", {})

    @property
    def digest(self):
        return None if self.project is None else self.project.digest

    def write(self, who, action, facts):
        previous = self.log[-1]["digest"] if self.log else LOG_START
        self.log.append(hub_entry(self.id, len(self.log) + 1, "2026-01-01T00:00:00Z", who, action, facts, previous))

    def POST_invitations(self, request, who):  # noqa: N802
        said, secret = json.loads(request.content), secrets.token_urlsafe(24)
        self.secrets[digest(secret.encode())] = (said["name"], said["role"])
        return answer(201, link=f"{str(request.url).partition('/v1/')[0]}/v1/projects/{self.id}/join#{secret}")

    def join(self, said, who, hub):
        found = self.secrets.pop(digest(said["secret"].encode()), None)
        if found is None:
            return refusal(403, "REMOTE_REFUSED", "used or unknown")
        hub.keys[who.fingerprint] = who
        self.asked[who.fingerprint] = {"name": found[0], "role": found[1], "public_key": said["public_key"]}
        return answer(202)

    def GET_requests(self, request, who):  # noqa: N802
        return answer(200, requests=[{"fingerprint": name, **said} for name, said in self.asked.items()])

    def POST_requests_one(self, request, who, fingerprint):  # noqa: N802
        said = self.asked.pop(fingerprint)
        if json.loads(request.content)["approve"]:
            self.members[fingerprint] = said["role"]
        return answer(200)

    def PUT_agreement(self, request, who):  # noqa: N802
        self.project, self.text = project_of(request.content, "the agreement"), request.content
        for key in (self.project.owner, self.project.analyst, *self.project.parties.values()):
            self.hub.keys[key.fingerprint] = key
            self.members.setdefault(key.fingerprint, "member")
        self.write(who.fingerprint, "agreement", {"digest": self.digest})
        return answer(200)

    def GET_agreement(self, request, who):  # noqa: N802
        there = self.text is not None
        return httpx.Response(200, content=self.text) if there else refusal(409, "AGREEMENT_MISSING", "none")

    def GET_status(self, request, who):  # noqa: N802
        names = {key.fingerprint: name for name, key in self.project.parties.items()}
        shared = [names[each["sender"]] for each in self.files.values() if each["kind"] in ("share", "sums")]
        said = {name: getattr(self.project, name) for name in ("name", "digest", "revision", "quorum")}
        missing = [name for name in names.values() if name not in shared]
        return answer(200, **said, shared=shared, missing=missing, waiting=[], now="2026-01-01T00:00:00Z")

    def POST_uploads(self, request, who):  # noqa: N802
        said = json.loads(request.content)
        if said["sha256"] in self.files:
            return answer(200, file=said["sha256"])
        key = digest(json.dumps([who.fingerprint, said], sort_keys=True).encode())[:32]
        upload = self.uploads.setdefault(key, {"said": said, "data": b"", "who": who.fingerprint})
        return answer(201, upload=key, offset=len(upload["data"]))

    def PATCH_uploads_one(self, request, who, name):  # noqa: N802
        upload = self.uploads.get(name)
        if upload is None:
            return refusal(404, "NOT_FOUND", "nothing of this name")
        there = len(upload["data"])
        if int(request.headers["Upload-Offset"]) != there:
            return httpx.Response(409, headers={"Upload-Offset": str(there)}, json={"code": "X", "message": ""})
        upload["data"] += request.content
        said = upload["said"]
        if len(upload["data"]) < said["size"]:
            return httpx.Response(204, headers={"Upload-Offset": str(len(upload["data"]))})
        del self.uploads[name]
        if digest(upload["data"]) != said["sha256"]:
            return refusal(422, "HASH_MISMATCH", "another hash")
        found = read_address(unpack(upload["data"]), self.project, "The upload")
        live = [each for each in self.files.values() if each["sender"] == who.fingerprint and not each["withdrawn"]]
        if said["kind"] == "share" and any(each["kind"] == "share" for each in live):
            return refusal(409, "ALREADY_SHARED", "one share")
        facts = {name: said[name] for name in ("kind", "sha256", "size")} | {"sender": found.sender.fingerprint}
        later = {"received": "2026-01-01T00:00:00Z", "fetched": None, "withdrawn": None, "data": upload["data"]}
        self.files[said["sha256"]] = {**facts, "recipient": said.get("recipient"), **later}
        self.write(who.fingerprint, "received", facts)
        return answer(201, file=said["sha256"])

    def GET_files(self, request, who):  # noqa: N802
        listed = [{name: each[name] for name in each if name != "data"} for each in self.files.values()]
        return answer(200, files=listed)

    def GET_files_one(self, request, who, sha256):  # noqa: N802
        data = self.files[sha256]["data"]
        wanted = request.headers.get("Range")
        if wanted is None:
            return httpx.Response(200, content=data)
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        return httpx.Response(206, content=data[start:], headers=headers)

    def DELETE_files_one(self, request, who, sha256):  # noqa: N802
        self.files[sha256] |= {"withdrawn": "2026-01-01T00:00:00Z", "data": b""}
        self.write(who.fingerprint, "withdrawn", {"sha256": sha256})
        return httpx.Response(204)

    def GET_log(self, request, who):  # noqa: N802
        return answer(200, entries=self.log[int(request.url.params["after"]) :][:3])


def answer(status, **said):
    return httpx.Response(status, json=said)


def refusal(status, code, message):
    return httpx.Response(status, json={"code": code, "message": message})
