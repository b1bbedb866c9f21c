"""`barnabas up --secure`: what it makes, what it reuses, and that clients need the login."""

import stat
import subprocess
from pathlib import Path

import pytest
import urllib3
from tests.cli.conftest import Barnabas
from tests.cli.up_process import BARNABAS, Up
from tests.wait import wait_until

from barnabas.cli.local_security import LocalSecurity, prepare_security
from barnabas.cli.operations.errors import CommandError
from barnabas.net.certificates import CertificateInfo
from barnabas.net.key_stores import read_pem


def certificate(security: LocalSecurity) -> CertificateInfo:
    key_store = read_pem((security.folder / "node.pem").read_text())
    return CertificateInfo.of(key_store.keys[0].chain[0])


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_only_the_owner_can_read_keys_and_passwords(tmp_path: Path) -> None:
    security = prepare_security(tmp_path / "data", "localhost")
    assert sorted(contents(security.folder)) == [
        *("ca.key", "ca.pem", "client.properties", "node.pem", "node.users"),
        *("registry-client.properties", "registry.properties"),
    ]
    modes = {stat.S_IMODE(file.stat().st_mode) for file in security.folder.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(security.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(security.folder.parent.stat().st_mode) == 0o700
    assert not any(password in repr(security) for password in security.passwords.values())


def test_a_second_start_reuses_everything(tmp_path: Path) -> None:
    first = prepare_security(tmp_path, "localhost")
    before = contents(first.folder)
    assert prepare_security(tmp_path, "localhost") == first
    assert contents(first.folder) == before


def test_another_host_gets_a_certificate_of_the_same_authority(tmp_path: Path) -> None:
    first = prepare_security(tmp_path, "localhost")
    before = contents(first.folder)
    assert certificate(first).alternative_names >= {"localhost", "127.0.0.1", "::1"}
    second = prepare_security(tmp_path, "broker.example.org", "SASL_SSL://[fd00::1]:9092")
    assert {"broker.example.org", "fd00::1"} <= certificate(second).alternative_names
    changed = [name for name, content in contents(second.folder).items() if content != before[name]]
    assert changed == ["node.pem"]


def test_an_interrupted_preparation_continues(tmp_path: Path) -> None:
    security = prepare_security(tmp_path, "localhost")
    security.client_file.unlink()
    (security.folder / "ca.pem").unlink()
    again = prepare_security(tmp_path, "localhost")
    assert again.passwords["node"] == security.passwords["node"]
    assert again.client_settings()["sasl.mechanism"] == "SCRAM-SHA-512"


def test_a_formatted_cluster_needs_the_passwords_it_was_formatted_with(tmp_path: Path) -> None:
    security = prepare_security(tmp_path, "localhost")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "meta.properties").touch()
    security.client_file.unlink()
    with pytest.raises(CommandError, match=r"client\.properties is missing: restore it"):
        prepare_security(tmp_path, "localhost")


def test_unsecured_and_secured_data_are_not_mixed(barnabas: Barnabas, tmp_path: Path) -> None:
    secured, unsecured = tmp_path / "secured", tmp_path / "unsecured"
    prepare_security(secured, "localhost")
    result = barnabas("up", "--dir", secured, "--port", "0")
    assert result.exit_code == 1
    assert "has a secured cluster: use --secure" in result.output
    unsecured.mkdir()
    (unsecured / "meta.properties").touch()
    result = barnabas("up", "--dir", unsecured, "--port", "0", "--secure")
    assert result.exit_code == 1
    assert "has data of an unsecured cluster: leave out --secure" in result.output


def test_a_path_with_any_letters_is_in_the_clients_file(tmp_path: Path) -> None:
    security = prepare_security(tmp_path / "Schl\\oß €", "localhost")
    location = security.client_settings()["ssl.truststore.location"]
    assert location == str(security.folder / "ca.pem")


def assert_needs_login(directory: Path, url: str) -> None:
    """Asserts that the admin is served over TLS, and nobody else."""
    admin = prepare_security(directory, "localhost").passwords["admin"]
    ca = str(directory / "security" / "ca.pem")
    with urllib3.PoolManager(ca_certs=ca, retries=False) as http:
        for password, status in ((None, 401), ("wrong", 401), (admin, 200)):
            login = None if password is None else f"admin:{password}"
            headers = urllib3.make_headers(basic_auth=login)
            assert http.request("GET", url, headers=headers).status == status


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_secured_cluster_serves_those_who_log_in(
    barnabas: Barnabas, tmp_path: Path, brokers: int
) -> None:
    first = Up(tmp_path / "data", brokers, "--secure", "--registry-port", "0").wait()
    try:
        login = ("--command-config", tmp_path / "data" / "security" / "client.properties")
        assert f"--command-config {login[1]}" in first.output.replace(" \\\n   ", "")
        server = ("-b", first.address)
        created = barnabas("topics", "create", "orders", *server, *login)
        assert created.exit_code == 0, created.output
        refused = subprocess.run(
            [*BARNABAS, "topics", "list", *server], capture_output=True, text=True, check=False
        )
        assert refused.returncode == 3
        assert "expects TLS" in refused.stderr
        registry = ("--registry", first.registry, "--registry-config")
        file = tmp_path / "data" / "security" / "registry-client.properties"
        wait_until(
            lambda: barnabas("schemas", "list", *registry, file).exit_code == 0,
            "the registry serves",
        )
        assert_needs_login(tmp_path / "data", f"{first.registry}/subjects")
        for url in first.metrics:
            assert_needs_login(tmp_path / "data", url)
    finally:
        first.end()
    second = Up(tmp_path / "data", brokers, "--secure").wait(starts=2)
    try:
        listed = barnabas("topics", "list", "-b", second.address, *login)
        assert "orders" in listed.output
    finally:
        second.end()
    passwords = prepare_security(tmp_path / "data", "127.0.0.1").passwords.values()
    log_files = [*tmp_path.glob("data/*/server.log"), *tmp_path.glob("data/**/schema-registry.log")]
    assert len(log_files) == brokers + 1
    logs = "".join(file.read_text() for file in log_files)
    assert not any(password in second.output + logs for password in passwords)
    assert "Traceback" not in second.output + logs
