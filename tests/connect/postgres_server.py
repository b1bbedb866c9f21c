"""A PostgreSQL server of the test session: its own cluster, on a free port, without fsync.

    from tests.connect.postgres_server import postgres_server

    def test_something(postgres_server: PostgresServer) -> None:
        url = postgres_server.create_database()

Needs the Debian package `postgresql`. As root, a missing one is installed; otherwise tests that use
the fixture are skipped. The server itself runs as `postgres` or `nobody` if the tests run as root.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

USER = "postgres"
PASSWORD = "secret"
BINARIES = Path("/usr/lib/postgresql")

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "50",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
    "wal_level": "logical",
    "timezone": "UTC",
}


@dataclass
class PostgresServer:
    """A running server. Databases are created by tests, so that they do not share tables."""

    folder: Path
    binaries: Path
    port: int
    _databases: int = field(default=0)

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def create_database(self) -> str:
        """Returns the JDBC URL of a new database."""
        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{name}"

    def uri(self, database: str = "postgres", user: str = USER) -> str:
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        """Returns an ADBC connection that commits each statement."""
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.uri(database), autocommit=True)

    def start(self) -> None:
        settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        options = f"-p {self.port} -c unix_socket_directories={self.folder} {settings}"
        log = self.folder / "log"
        self._pg_ctl("start", "-w", "-l", str(log), "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        self._pg_ctl("stop", "-w", "-m", mode)

    def _pg_ctl(self, *arguments: str) -> None:
        run_unprivileged(
            [str(self.binaries / "pg_ctl"), "-D", str(self.folder / "data"), *arguments]
        )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    if find_binaries() is None:
        pytest.skip("PostgreSQL is not installed: install the Debian package postgresql")
    with running_postgres() as server:
        yield server


@contextlib.contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Runs a new server. Raises RuntimeError if PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        raise RuntimeError("PostgreSQL is not installed: install the Debian package postgresql")
    with tempfile.TemporaryDirectory(prefix="barnabas-postgres-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            owner = _unprivileged_user()
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        run_unprivileged(
            [
                str(binaries / "initdb"),
                *("-D", str(folder / "data")),
                *("-U", USER, "--auth=scram-sha-256", f"--pwfile={password}"),
                *("--encoding=UTF8", "--no-sync", "--locale=C.UTF-8"),
            ]
        )
        server = PostgresServer(folder, binaries, _free_port())
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                server.stop()


def find_binaries() -> Path | None:
    """Returns the folder of the server's programs, installing them if that is possible."""
    found = _installed_binaries()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            ["apt-get", "install", "-y", "postgresql"],
            env=environment,
            capture_output=True,
            timeout=600,
        )
        found = _installed_binaries()
    return found


def _installed_binaries() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    versions = sorted(BINARIES.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def run_unprivileged(command: Sequence[str]) -> None:
    """Runs a program of PostgreSQL, which rejects root."""
    user = _unprivileged_user() if os.geteuid() == 0 else None
    options: dict[str, Any] = {}
    if user is not None:
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with tempfile.TemporaryFile() as output:  # a server would keep a pipe open
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            timeout=120,
            **options,
        )
        if result.returncode:
            output.seek(0)
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')}")


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("There is no user postgres or nobody to run PostgreSQL as.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
