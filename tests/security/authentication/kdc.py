"""A Kerberos realm on loopback, whose files are all in one directory."""

import os
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.wait import wait_until

from barnabas.testing.ports import LOOPBACK, free_port

REALM = "CASTLE.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
_SBIN = "/usr/sbin:/sbin"


def missing() -> str | None:
    """Returns what must be installed to run a realm, or None."""
    absent = [name for name in _PROGRAMS if _find(name) is None]
    if absent:
        return f"{', '.join(absent)}: apt-get install krb5-kdc krb5-admin-server"
    if find_spec("gssapi") is None:
        return "python-gssapi: apt-get install libkrb5-dev, then pip install 'barnabas[kerberos]'"
    return None


class Realm:
    """A running key distribution center."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environment = {
            **os.environ,
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
            "KRB5RCACHEDIR": str(folder),
        }

    def add_key(self, principal: str) -> Path:
        """Adds a principal, and returns the keytab with its key."""
        keytab = self._folder / (principal.replace("/", "-") + ".keytab")
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def run(self, program: str, *arguments: str) -> None:
        path = _find(program)
        assert path is not None
        subprocess.run(
            [path, *arguments], env=self.environment, check=True, capture_output=True, timeout=60
        )


@contextmanager
def a_realm(folder: Path) -> Iterator[Realm]:
    port = free_port()
    _write(
        folder / "krb5.conf",
        f"""
        [libdefaults]
            default_realm = {REALM}
            dns_lookup_kdc = false
            dns_canonicalize_hostname = false
            rdns = false
        [realms]
            {REALM} = {{
                kdc = {LOOPBACK}:{port}
            }}
        [domain_realm]
            localhost = {REALM}
        """,
    )
    _write(
        folder / "kdc.conf",
        f"""
        [kdcdefaults]
            kdc_listen = {LOOPBACK}:{port}
            kdc_tcp_listen = {LOOPBACK}:{port}
        [realms]
            {REALM} = {{
                database_name = {folder / "principal"}
                key_stash_file = {folder / "stash"}
                acl_file = {folder / "acl"}
                supported_enctypes = aes256-cts:normal
            }}
        [logging]
            kdc = FILE:{folder / "kdc.log"}
        """,
    )
    realm = Realm(folder)
    realm.run("kdb5_util", "create", "-s", "-P", "the key of the database")
    program = _find("krb5kdc")
    assert program is not None
    process = subprocess.Popen([program, "-n"], env=realm.environment)
    try:
        log = folder / "kdc.log"
        wait_until(lambda: log.exists() and "commencing operation" in log.read_text())
        yield realm
    finally:
        process.terminate()
        process.wait()


def _write(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))


def _find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SBIN}")
