"""`connection.url`: JDBC's form, and those of libpq and SQLite."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from barnabas.connect.errors import InvalidConfigError

log = logging.getLogger(__name__)


class DatabaseKind(StrEnum):
    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"


@dataclass(slots=True, frozen=True)
class DatabaseUrl:
    """Where a database is, for its driver."""

    kind: DatabaseKind
    uri: str
    """What the driver takes. It may have a password."""
    shown: str
    """The same without user, password and options, for messages."""


_LIBPQ_OPTIONS = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "gssEncMode": "gssencmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
    "targetServerType": "target_session_attrs",
    "tcpKeepAlive": "keepalives",
} | {
    name: name
    for name in (
        "application_name",
        "channel_binding",
        "connect_timeout",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "options",
        "passfile",
        "port",
        "service",
        "sslcrl",
        "ssl_min_protocol_version",
        "target_session_attrs",
        "tcp_user_timeout",
    )
}
"""Options of the JDBC driver and of libpq, with libpq's name."""

_SERVER_TYPES = {"master": "read-write", "primary": "primary", "secondary": "standby"} | {
    "slave": "standby",
    "preferSecondary": "prefer-standby",
    "preferSlave": "prefer-standby",
}


def parse_url(
    url: str,
    user: str | None = None,
    password: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DatabaseUrl:
    """Raises ConfigError if there is no driver for the URL."""
    plain = url.strip().removeprefix("jdbc:")
    scheme, separator, rest = plain.partition(":")
    match scheme.lower():
        case "postgresql" | "postgres" if separator:
            return _parse_postgresql(rest, user, password, options or {})
        case "sqlite" if separator:
            return _parse_sqlite(url, rest)
    known = "jdbc:postgresql://HOST/DATABASE and jdbc:sqlite:FILE"
    if not plain:
        raise InvalidConfigError(f"connection.url is empty. It can be {known}.")
    raise InvalidConfigError(
        f"There is no driver for connection.url '{_masked(url)}'. It can be {known}."
    )


def _masked(url: str) -> str:
    return url.partition("?")[0].rpartition("@")[2]


def _parse_postgresql(
    rest: str, user: str | None, password: str | None, options: Mapping[str, str]
) -> DatabaseUrl:
    # `jdbc:postgresql:database` has no host.
    parts = urlsplit(f"postgresql:{rest if rest.startswith('//') else '//localhost/' + rest}")
    credentials, _, hosts = parts.netloc.rpartition("@")
    url_user, _, url_password = credentials.partition(":")
    given = dict(parse_qsl(parts.query)) | dict(options)
    user = user or given.pop("user", None) or unquote(url_user) or None
    password = password or given.pop("password", None) or unquote(url_password) or None
    given.pop("user", None)
    given.pop("password", None)
    credentials = quote(user, safe="") if user else ""
    if password is not None and user:
        credentials += ":" + quote(password, safe="")
    elif password is not None:
        given["password"] = password
    hosts = hosts or "localhost"
    query = urlencode(_libpq_options(given), quote_via=quote)
    uri = f"postgresql://{credentials}{'@' if credentials else ''}{hosts}{parts.path}"
    return DatabaseUrl(
        DatabaseKind.POSTGRESQL,
        f"{uri}?{query}" if query else uri,
        f"postgresql://{hosts}{parts.path}",
    )


def _libpq_options(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in given.items():
        if name == "currentSchema":
            found["options"] = f"{found.get('options', '')} -csearch_path={value}".strip()
        elif name == "ssl":
            if value.lower() != "false":
                found.setdefault("sslmode", "verify-full")
        elif name == "targetServerType":
            found["target_session_attrs"] = _SERVER_TYPES.get(value, "any")
        elif name == "tcpKeepAlive":
            found["keepalives"] = str(int(value.lower() == "true"))
        elif name == "password":
            found["password"] = value
        elif name in _LIBPQ_OPTIONS:
            found[_LIBPQ_OPTIONS[name]] = value
        else:
            log.warning("Option %s of connection.url has no effect.", name)
    return found


def _parse_sqlite(url: str, rest: str) -> DatabaseUrl:
    path, _, query = rest.partition("?")
    if path.startswith("///"):
        path = path[2:]  # sqlite:///relative and sqlite:////absolute differ by one slash
        path = path[1:] if not path.startswith("//") and not url.startswith("jdbc:") else path
        path = path.replace("//", "/", 1)
    if not path or path == ":memory:" or "mode=memory" in query:
        raise InvalidConfigError(
            f"connection.url '{url}' is a database in memory, which tasks cannot share. "
            "Use a file: jdbc:sqlite:/path/to/file.db."
        )
    return DatabaseUrl(DatabaseKind.SQLITE, path, f"sqlite:{path}")
