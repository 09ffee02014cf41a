"""A hub whose certificate its own organisation has signed is reached with that organisation's certificate alone."""

import datetime
import http.server
import ipaddress
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from datacollab.bundle import KeyPair
from datacollab_hub.remote import HubRemote, Patience
from party_world import refused

NOW = datetime.datetime.now(datetime.UTC)


def certificate(name, key, issuer, issuer_key, *, is_ca):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        **dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
        ),
        **{"digital_signature": True, "key_cert_sign": is_ca, "crl_sign": is_ca, "decipher_only": False},
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(days=1))
        .not_valid_after(NOW + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"projects": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def hub(tmp_path):
    """The address of a server, whose authority's certificate is beside it."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    authority = certificate("Nordklinik", keys[0], None, keys[0], is_ca=True)
    own = certificate("hub", keys[1], authority.subject, keys[0], is_ca=False)
    pem = serialization.Encoding.PEM
    (tmp_path / "ca.pem").write_bytes(authority.public_bytes(pem))
    secret = keys[1].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "hub.pem").write_bytes(own.public_bytes(pem) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hub.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def asked(url, **options):
    remote = HubRemote(url, KeyPair.generate(), patience=Patience(attempts=1), **options)
    try:
        return remote.client.ask("GET", "/v1/projects").json()
    finally:
        remote.close()


def test_an_organisations_own_certificate(hub, tmp_path):
    assert asked(hub, ca=tmp_path / "ca.pem") == {"projects": []}
    with refused("TLS_UNTRUSTED"):
        asked(hub)
    with refused("TLS_UNTRUSTED"):
        asked(hub.replace("127.0.0.1", "localhost"), ca=tmp_path / "ca.pem")  # signed for another name
