"""nginx with the configuration of docs/proxy.md, of which only ports and paths are replaced.

It is Debian's: of this machine, or unpacked by `tools/setup` where the machine has none. It listens on loopback,
has a certificate that is made for the test, and keeps all of its files in a folder of the test.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx2
import pytest
import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.docs.pages import blocks_of
from tests.serving import until
from tools.nginx import libraries, nginx

PAGE: Final = "docs/proxy.md"
NAME: Final = "models.example"
ANN: Final = {"Authorization": "Bearer the-token-of-ann"}
BEN: Final = {"Authorization": "Bearer the-token-of-ben"}
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})
KEY: Final = "the-key-of-diglot"
# What Debian's own nginx.conf has around the files in conf.d, with nothing outside of a folder.
_AROUND: Final = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/conf.d/*.conf;
}}
"""


def program() -> Path:
    """Return nginx, or skip the test on a machine that cannot have it."""
    found = nginx()
    if found is None:
        pytest.skip("this machine has no nginx, and none could be had from Debian's packages")
    return found


def configuration() -> str:
    """Return what stands in the page."""
    (block,) = (block for block in blocks_of(PAGE) if block.language == "nginx")
    return block.text


def filled_in(text: str, *, port: int, upstream: int, certificate: Path, key: Path) -> str:
    """Return the configuration with ports and paths of a test. Each of them must be there to be replaced."""
    for old, new, count in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl", 2),
        ("server 127.0.0.1:11435;", f"server 127.0.0.1:{upstream};", 1),
        (f"/etc/ssl/certs/{NAME}.pem", str(certificate), 1),
        (f"/etc/ssl/private/{NAME}.key", str(key), 1),
    ):
        assert text.count(old) == count, old
        text = text.replace(old, new)
    return text


class Proxy:
    """nginx as it runs."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self.trust = ssl.create_default_context(cafile=folder / "certificate.pem")

    def client(self, token: Mapping[str, str] = NOBODY, **headers: str) -> httpx2.Client:
        """Return a client that takes this for models.example."""
        return httpx2.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": NAME, **token, **headers},
            event_hooks={"request": [as_its_name]},
            verify=self.trust,
            trust_env=False,
            timeout=60.0,
        )

    def socket(self, token: Mapping[str, str]) -> websockets.connect:
        """Return a WebSocket of the Responses API, to be used with `async with`."""
        uri = f"wss://{NAME}/v1/responses"
        there: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "ssl": self.trust, "proxy": None}
        return websockets.connect(uri, additional_headers=token, **there)

    def log(self) -> str:
        """Return what it has complained of."""
        return (self.folder / "error.log").read_text()


def as_its_name(request: httpx2.Request) -> None:
    """Ask for the certificate of the name, whatever the address is (RFC 6066, section 3)."""
    request.extensions["sni_hostname"] = NAME


@contextmanager
def proxying(folder: Path, upstream: int) -> Iterator[Proxy]:
    """Run nginx before a port of this machine. It takes over a socket that listens already: nobody else gets that port."""
    binary = program()
    make_certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening, running(binary, folder, listening, upstream) as proxy:
        yield proxy


@contextmanager
def running(binary: Path, folder: Path, listening: socket.socket, upstream: int) -> Iterator[Proxy]:
    """Run nginx on a socket."""
    port = listening.getsockname()[1]
    (folder / "conf.d").mkdir()
    text = filled_in(
        configuration(),
        port=port,
        upstream=upstream,
        certificate=folder / "certificate.pem",
        key=folder / "certificate.key",
    )
    (folder / "conf.d/diglot.conf").write_text(text)
    (folder / "nginx.conf").write_text(_AROUND.format(folder=folder) + ("user root;\n" if os.geteuid() == 0 else ""))
    handed = listening.fileno()
    env = os.environ | libraries(binary) | {"NGINX": f"{handed};"}  # As its own upgrade does.
    command = [str(binary), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with (
        (folder / "said.log").open("w") as said,
        subprocess.Popen(command, env=env, stderr=said, pass_fds=[handed]) as process,
    ):
        proxy = Proxy(port, folder)
        try:
            until(lambda: process.poll() is not None or (folder / "nginx.pid").exists())
            assert process.poll() is None, (folder / "said.log").read_text()
            yield proxy
        finally:
            process.terminate()


def make_certificate(folder: Path) -> None:
    """Write a certificate for models.example, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME), x509.DNSName("127.0.0.1")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "certificate.key").write_bytes(secret)
