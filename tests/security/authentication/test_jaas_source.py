"""Which JAAS entry a listener has: its setting, or else a section of the file."""

from pathlib import Path

import pytest

from barnabas.config import BrokerSettings
from barnabas.node.format import single_node_properties
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.jaas import JaasEntry
from barnabas.security.authentication.jaas_source import JaasSource, kerberos_service

FILE = """
KafkaServer {
    a.ScramLoginModule required username="of the file";
    a.PlainLoginModule required username="of the file";
};
plaintext.KafkaServer {
    a.PlainLoginModule required username="of the listener";
};
"""


def source(
    tmp_path: Path, settings: dict[str, str], environment: dict[str, str] | None = None
) -> JaasSource:
    properties = single_node_properties("127.0.0.1", 0, tmp_path) | settings
    return JaasSource(BrokerSettings.from_properties(properties), environment or {})


def user_of(entry: JaasEntry | None) -> str | None:
    return None if entry is None else entry.options["username"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    return path


def test_a_setting_is_for_one_listener_and_mechanism(tmp_path: Path, file: Path) -> None:
    name = "listener.name.plaintext.scram-sha-256.sasl.jaas.config"
    settings = {
        "barnabas.sasl.jaas.file": str(file),
        name: 'a.ScramLoginModule required username="of the setting";',
    }
    jaas = source(tmp_path, settings)
    assert user_of(jaas.find("PLAINTEXT", "SCRAM-SHA-256")) == "of the setting"
    assert user_of(jaas.find("PLAINTEXT", "SCRAM-SHA-512")) == "of the file"
    assert user_of(jaas.find("CONTROLLER", "SCRAM-SHA-256")) == "of the file"


def test_a_section_of_the_listener_comes_before_that_of_all(tmp_path: Path, file: Path) -> None:
    jaas = source(tmp_path, {"barnabas.sasl.jaas.file": str(file)})
    assert user_of(jaas.find("PLAINTEXT", "PLAIN")) == "of the listener"
    assert user_of(jaas.find("CONTROLLER", "PLAIN")) == "of the file"
    assert jaas.find("PLAINTEXT", "GSSAPI") is None


def test_the_file_may_be_that_of_kafkas_environment_variable(tmp_path: Path, file: Path) -> None:
    options = f"-Xmx1g -Djava.security.auth.login.config={file} -Dx=y"
    jaas = source(tmp_path, {}, {"KAFKA_OPTS": options})
    assert user_of(jaas.find("CONTROLLER", "PLAIN")) == "of the file"
    assert source(tmp_path, {}).find("CONTROLLER", "PLAIN") is None


def test_a_malformed_file_is_an_error_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text('KafkaServer { a.PlainLoginModule required password="secret" };')
    with pytest.raises(SaslConfigError, match=r"jaas\.conf cannot be read") as raised:
        source(tmp_path, {"barnabas.sasl.jaas.file": str(path)})
    assert "secret" not in str(raised.value)


def test_the_service_of_kerberos_must_be_the_same_in_entry_and_setting() -> None:
    entry = JaasEntry("Krb5LoginModule", "required", {"serviceName": "kafka"})
    assert kerberos_service(entry, None) == kerberos_service(entry, "kafka") == "kafka"
    with pytest.raises(SaslConfigError, match="differs"):
        kerberos_service(entry, "broker")
