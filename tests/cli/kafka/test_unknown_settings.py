"""Files of settings that hold more than a client knows: told on standard error, and passed over."""

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

TOLD = """\
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
def test_flat_commands_go_on(
    kafka: Command, file: Path, name: str, arguments: tuple[str, ...]
) -> None:
    said = kafka(name, *arguments, "--command-config", file)
    assert (said.status, said.err) == (0, TOLD)


@pytest.mark.parametrize(
    ("name", "verb"),
    [("kafka-features", ("describe",)), ("kafka-transactions", ("list",))],
)
def test_commands_with_verbs_go_on(
    kafka: Command, file: Path, name: str, verb: tuple[str, ...]
) -> None:
    said = kafka(name, "--command-config", file, *verb)
    assert (said.status, said.err) == (0, TOLD)


def test_a_value_that_cannot_be_is_refused(kafka: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=soon\n")
    said = kafka("kafka-topics", "--list", "--command-config", file)
    assert said.status == 1
    assert 'Invalid value "soon" for configuration property "request.timeout.ms"' in said.out
