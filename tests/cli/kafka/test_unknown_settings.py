"""Unknown settings in a file print a warning on standard error and are ignored."""

from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command

PROPERTIES = """
# of an application, with what its other parts need
security.protocol=PLAINTEXT
ssl.truststore.location=/etc/kafka/truststore.jks
ssl.truststore.password=changeit
client.dns.lookup=use_all_dns_ips
default.api.timeout.ms=60000
group.id=billing
acks=all
key.serializer=org.apache.kafka.common.serialization.StringSerializer
interceptor.classes=org.example.Interceptor
schema.registry.url=http://localhost:8081
bootstrap.server=elsewhere:9092
"""

WARNINGS = """\
WARN No such configuration property: "schema.registry.url"
WARN No such configuration property: "bootstrap.server"; did you mean "bootstrap.servers"?
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(PROPERTIES)
    return file


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("kafka-topics", ("--list",)),
        ("kafka-configs", ("--describe", "--entity-type", "topics")),
        ("kafka-consumer-groups", ("--list",)),
        ("kafka-broker-api-versions", ()),
        ("kafka-log-dirs", ("--describe",)),
    ],
)
def test_flat_commands_ignore_unknown_settings(
    kafka: Command, file: Path, name: str, arguments: tuple[str, ...]
) -> None:
    result = kafka(name, *arguments, "--command-config", file)
    assert (result.status, result.err) == (0, WARNINGS)


@pytest.mark.parametrize(
    ("name", "verb"),
    [("kafka-features", ("describe",)), ("kafka-transactions", ("list",))],
)
def test_commands_with_subcommands_ignore_unknown_settings(
    kafka: Command, file: Path, name: str, verb: tuple[str, ...]
) -> None:
    result = kafka(name, "--command-config", file, *verb)
    assert (result.status, result.err) == (0, WARNINGS)


def test_an_invalid_value_is_rejected(kafka: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=soon\n")
    result = kafka("kafka-topics", "--list", "--command-config", file)
    assert result.status == 1
    assert 'Invalid value "soon" for configuration property "request.timeout.ms"' in result.out
