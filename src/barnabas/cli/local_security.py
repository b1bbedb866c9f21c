"""The security of a cluster on this machine, as `barnabas up --secure` makes it.

All listeners have SASL_SSL, and ACLs decide who may do what. Only the owner can read the folder
`security` of the data directory. It has:

    ca.pem, ca.key       the certificate authority that clients and nodes trust
    node.pem             the key and the certificate of all nodes
    node.users           the user with which nodes log in to each other
    client.properties    settings with which clients connect, as the user admin
    registry.properties  TLS and authentication of the schema registry
    registry-client.properties  settings with which its clients connect, as the user admin

Everything is made once. Only the certificate of the nodes is issued again: before it expires, and
for hosts that it lacks.
"""

import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.scram_users import parse_scram_users
from barnabas.cli.operations.settings import read_properties
from barnabas.config.addresses import ALL_INTERFACES
from barnabas.log.directory.directory_files import META_PROPERTIES
from barnabas.security.authentication.jaas import JaasError, parse_jaas
from barnabas.security.authentication.users import parse_users
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.security.tls.certificate_authority import CertificateAuthority

ADMIN: Final = "admin"
NODE: Final = "node"
SECURITY_FOLDER: Final = "security"

_MECHANISM: Final = "SCRAM-SHA-512"
_PASSWORD_BYTES: Final = 24
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(slots=True, frozen=True)
class LocalSecurity:
    """The files of a secured cluster, and the passwords of its first users."""

    folder: Path
    passwords: Mapping[str, str] = field(repr=False)

    @property
    def client_file(self) -> Path:
        return self.folder / "client.properties"

    @property
    def registry_file(self) -> Path:
        """The settings of the schema registry's listener."""
        return self.folder / "registry.properties"

    @property
    def registry_client_file(self) -> Path:
        """The settings that clients of the schema registry need."""
        return self.folder / "registry-client.properties"

    @property
    def authority_file(self) -> Path:
        return self.folder / "ca.pem"

    def client_settings(self) -> dict[str, str]:
        """Returns the settings with which this process connects."""
        return read_properties(self.client_file)

    def scram_users(self) -> list[Message]:
        """Returns the records of the first users, for the format of the nodes."""
        return parse_scram_users(
            f"{_MECHANISM}=[name={user},password={password}]"
            for user, password in self.passwords.items()
        )

    def secured(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Returns the properties of a node with its listeners secured.

        Nodes log in to controllers with PLAIN: a controller knows the SCRAM users only when it
        has read the metadata log, and it needs the other controllers for that.
        """
        listeners = properties["listeners"].replace("PLAINTEXT://", "SASL_SSL://")
        return {
            **properties,
            "listeners": listeners,
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": "SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "sasl.enabled.mechanisms": _MECHANISM,
            "sasl.mechanism.inter.broker.protocol": _MECHANISM,
            "listener.name.controller.sasl.enabled.mechanisms": f"PLAIN,{_MECHANISM}",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "barnabas.sasl.users.file": str(self.folder / "node.users"),
            "barnabas.sasl.username": NODE,
            "barnabas.sasl.password": self.passwords[NODE],
            "barnabas.metrics.protocol": "https",
            "barnabas.metrics.authentication": "BASIC",
            "authorizer.class.name": "acl",
            "super.users": f"User:{NODE};User:{ADMIN}",
        }


def prepare_security(directory: Path, host: str, advertised_listeners: str = "") -> LocalSecurity:
    """Returns the security of a data directory, and makes what is missing.

    The certificate is for the host that clients are served on, and for advertised ones.

    Raises CommandError if the directory has a cluster without it.
    """
    folder = directory / SECURITY_FOLDER
    if _has_data(directory) and not folder.exists():
        raise CommandError(
            f"{directory} has data of an unsecured cluster: leave out --secure, or choose another "
            "--dir."
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _prepare_certificates(folder, _hosts(host, advertised_listeners))
        return _prepare_users(folder, is_new=not _has_data(directory))
    except OSError as error:
        raise CommandError(f"{error.filename or folder}: {error.strerror}.") from None


def require_unsecured(directory: Path) -> None:
    """Raises CommandError if the cluster of a data directory is secured."""
    if (directory / SECURITY_FOLDER / "client.properties").exists():
        raise CommandError(
            f"{directory} has a secured cluster: use --secure, or choose another --dir."
        )


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="latin-1") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    part.replace(path)


def _has_data(directory: Path) -> bool:
    """Whether nodes are formatted here: one in the directory itself, or some in its folders."""
    return any(directory.glob(META_PROPERTIES)) or any(directory.glob(f"*/{META_PROPERTIES}"))


def _hosts(host: str, advertised_listeners: str) -> list[str]:
    """Returns the names and addresses at which the listeners can be reached."""
    name = socket.gethostname()
    hosts = ["localhost", "127.0.0.1", "::1", name]
    if host.strip("[]") in ALL_INTERFACES:
        hosts += _addresses_of(name)
    else:
        hosts.append(host.strip("[]"))
    for listener in advertised_listeners.split(","):
        hosts.append(listener.partition("://")[2].rpartition(":")[0].strip("[]"))
    return [host for host in dict.fromkeys(hosts) if host and host.isascii()]


def _addresses_of(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]).partition("%")[0] for *_, address in found]


def _prepare_certificates(folder: Path, hosts: list[str]) -> None:
    authority = _load_authority(folder)
    key_store = folder / "node.pem"
    if authority is None:
        authority = _create_authority(folder)
    elif key_store.exists() and _is_usable(key_store, hosts):
        return
    write_private(key_store, authority.issue_key_store("Barnabas node", hosts))


def _load_authority(folder: Path) -> "CertificateAuthority | None":
    from barnabas.security.tls.certificate_authority import CertificateAuthority

    try:
        certificate, key = (folder / "ca.pem").read_bytes(), (folder / "ca.key").read_bytes()
    except FileNotFoundError:
        return None
    try:
        return CertificateAuthority.load(certificate, key)
    except ValueError as error:
        raise CommandError(f"{folder}/ca.pem and ca.key cannot be used: {error}.") from None


def _create_authority(folder: Path) -> "CertificateAuthority":
    from barnabas.security.tls.certificate_authority import CertificateAuthority

    authority = CertificateAuthority.create(f"Barnabas CA of {socket.gethostname()}"[:64])
    write_private(folder / "ca.key", authority.key_pem)
    write_private(folder / "ca.pem", authority.certificate_pem)
    return authority


def _is_usable(key_store: Path, hosts: list[str]) -> bool:
    """Whether the certificate is for all hosts, and does not expire soon."""
    from barnabas.net.certificates import CertificateInfo
    from barnabas.net.key_stores import read_pem

    try:
        info = CertificateInfo.of(read_pem(key_store.read_text()).keys[0].chain[0])
    except (ValueError, IndexError):
        return False
    return info.alternative_names >= set(hosts) and info.find_warning(datetime.now(UTC)) is None


def _prepare_users(folder: Path, *, is_new: bool) -> LocalSecurity:
    users, client = folder / "node.users", folder / "client.properties"
    if is_new:
        if not users.exists():
            write_private(users, f"{NODE}:{secrets.token_urlsafe(_PASSWORD_BYTES)}\n")
        if not client.exists():
            password = secrets.token_urlsafe(_PASSWORD_BYTES)
            write_private(client, _client_properties(folder, password))
    for file in (users, client):
        if not file.exists():
            raise CommandError(f"{file} is missing: restore it, or choose another --dir.")
    try:
        node_password = parse_users(users.read_text().splitlines())[NODE]
        admin_login = parse_jaas(read_properties(client)["sasl.jaas.config"])
        passwords = {NODE: node_password, ADMIN: admin_login.options["password"]}
    except (JaasError, KeyError, ValueError):
        raise CommandError(f"{users} or {client} is damaged: restore it.") from None
    security = LocalSecurity(folder, passwords)
    _prepare_registry(security)
    return security


def _prepare_registry(security: LocalSecurity) -> None:
    """Writes the files of the schema registry, and of its clients, if they are missing."""
    node, authority = (_escaped(str(security.folder / name)) for name in ("node.pem", "ca.pem"))
    if not security.registry_file.exists():
        write_private(
            security.registry_file,
            "authentication.method=BASIC\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={node}\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={authority}\n",
        )
    if not security.registry_client_file.exists():
        write_private(
            security.registry_client_file,
            f"# Connects as the user {ADMIN}, who may do everything: keep it secret.\n"
            f"basic.auth.user.info={ADMIN}:{security.passwords[ADMIN]}\n"
            f"ssl.ca.location={authority}\n",
        )


def _client_properties(folder: Path, password: str) -> str:
    return (
        f"# Connects as the user {ADMIN}, who may do everything: keep it secret.\n"
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={_escaped(str(folder / 'ca.pem'))}\n"
        f"sasl.mechanism={_MECHANISM}\n"
        f'sasl.jaas.config={_LOGIN_MODULE} required username="{ADMIN}" password="{password}";\n'
    )


def _escaped(value: str) -> str:
    r"""Escapes a value of a properties file: backslashes, and what Latin-1 lacks as \uXXXX."""
    units = value.replace("\\", "\\\\").encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)
