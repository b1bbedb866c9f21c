"""Our commands of ACLs, users, quotas, tokens and client metrics print what Kafka's print.

Each scenario runs once with Kafka's commands and once with ours, on resources of two names.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, is_peer_installed
from tests.conformance.test_commands import CommandOutput, run_kafka_command, run_our_command
from tests.wait import wait_until

from barnabas.admin import AdminClient, DelegationTokenDescription
from barnabas.testing.ports import free_port

pytestmark = pytest.mark.peer

Run = Callable[..., CommandOutput]

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Broker]:
    """The real Kafka with ACLs and delegation tokens; everybody on PLAINTEXT is a super user."""
    if not is_peer_installed():
        pytest.skip("Kafka's commands are not installed: set PEERS to the folder of its script")
    port = free_port()
    listeners = (
        f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1},"
        f"SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    )
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="a";',
        "delegation.token.secret.key": "key",
    }
    kafka = PeerBroker(tmp_path_factory.mktemp("secured"), port=port, settings=settings)
    kafka.start()
    yield kafka
    kafka.stop()


@pytest.fixture(scope="module")
def unsecured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    process = BrokerProcess(tmp_path_factory.mktemp("unsecured"))
    process.start()
    yield process
    process.stop()


def compare(command: str, bootstrap: str, *lines: str) -> None:
    """Runs every line with a name of its own for each side, and compares what is printed."""
    connection = ("--bootstrap-server", bootstrap)
    for side, run in (("a", run_kafka_command), ("b", run_our_command)):
        name = f"name-{side}"
        printed = [
            run(command, *connection, *line.replace("{}", name).split(), topic=name)
            for line in lines
        ]
        if side == "a":
            expected = printed
    for line, theirs, ours in zip(lines, expected, printed, strict=True):
        assert unordered(ours) == unordered(theirs), line


def unordered(output: CommandOutput) -> CommandOutput:
    """Kafka's commands print ACLs in no order, the first one after a space, and stack traces."""
    lines = [line.strip() for line in output.lines if not line.startswith("java.lang.")]
    return CommandOutput(output.status, sorted(filter(None, lines)))


def test_acls(secured: Broker) -> None:
    compare(
        "acls",
        secured.bootstrap,
        "--add --allow-principal User:{} --producer --topic {} --transactional-id {}",
        "--add --allow-principal User:{} --consumer --topic {} --group {}",
        "--add --deny-principal User:{} --deny-host 10.0.0.1 --operation Read --topic {}",
        "--add --allow-principal User:{} --topic {} --resource-pattern-type prefixed",
        "--list --topic {} --resource-pattern-type any",
        "--list --principal User:{} --group {}",
        "--remove --force --topic {} --allow-principal User:{} --producer",
        "--list --topic {}",
        "--remove --force --topic {} --resource-pattern-type any",
        "--list --topic {} --resource-pattern-type any",
        "--add --topic {}",
        "--add --allow-principal {} --topic {}",
        "--list --add",
    )


@pytest.mark.parametrize("kind", ["secured", "unsecured"])
def test_users_and_quotas(request: pytest.FixtureRequest, kind: str) -> None:
    compare(
        "configs",
        request.getfixturevalue(kind).bootstrap,
        "--alter --user {} --add-config producer_byte_rate=1024",
        "--alter --user {} --client-defaults --add-config consumer_byte_rate=7",
        "--describe --user {}",
        "--describe --user {} --client-defaults",
        "--alter --user {} --delete-config producer_byte_rate",
        "--describe --user {}",
        "--alter --user {} --add-config SCRAM-SHA-256=[iterations=8192,password=secret]",
        "--alter --user {} --add-config SCRAM-SHA-512=[password=secret]",
        "--describe --user {}",
        "--alter --user {} --delete-config SCRAM-SHA-512,SCRAM-SHA-256",
        "--alter --user {} --delete-config SCRAM-SHA-512",
        "--alter --ip 10.0.0.7 --add-config connection_creation_rate=5",
        "--describe --ip 10.0.0.7",
        "--alter --ip 10.0.0.7 --delete-config connection_creation_rate",
    )


@pytest.mark.parametrize("kind", ["secured", "unsecured"])
def test_client_metrics(request: pytest.FixtureRequest, kind: str) -> None:
    compare(
        "client-metrics",
        request.getfixturevalue(kind).bootstrap,
        "--alter --name {} --metrics org.apache.,x --interval 1000 --match client_id=a.*",
        "--describe --name {}",
        "--list",
        "--alter --name {} --interval 5",
        "--delete --name {}",
        "--describe --name {}",
    )


TOKEN_MASKS = ((r"\b[\w-]{22}\b", "ID"), (r"[\w+/]{86}==", "HMAC"), (r"\d{4}-\S+", "DATE"))


def test_delegation_tokens(secured: Broker, sasl_port: int, tmp_path: Path) -> None:
    file = tmp_path / "alice.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="a";\n'
    )
    connection = ("--bootstrap-server", f"127.0.0.1:{sasl_port}", "--command-config", str(file))
    create = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:r")
    sides = {"name-a": run_kafka_command, "name-b": run_our_command}
    for line in (
        (*create, "--owner-principal", "User:{}"),
        ("--describe", "--owner-principal", "User:{}"),
        ("--create",),
    ):
        theirs, ours = (
            masked(
                run(
                    "delegation-tokens",
                    *connection,
                    *(word.replace("{}", name) for word in line),
                    topic=name,
                )
            )
            for name, run in sides.items()
        )
        assert ours == theirs
    hmac = own_token(sasl_port)
    for run in run_kafka_command, run_our_command:
        renewed = masked(
            run(
                "delegation-tokens",
                *connection,
                "--renew",
                "--hmac",
                hmac,
                "--renew-time-period=-1",
            )
        )
        assert renewed.lines == [
            "Calling renew token operation with hmac :HMAC , renew-time-period :-1",
            "Completed renew operation. New expiry date : DATE",
        ]
    expire = ("--expire", "--hmac", hmac, "--expiry-time-period=-1")
    expired = masked(run_our_command("delegation-tokens", *connection, *expire))
    assert expired.lines[1] == "Completed expire operation. New expiry date : DATE"
    assert run_our_command("delegation-tokens", *connection, *expire).status == 1
    assert run_kafka_command("delegation-tokens", *connection, *expire).status == 1


def masked(output: CommandOutput) -> CommandOutput:
    lines = output.lines
    for pattern, mask in TOKEN_MASKS:
        lines = [re.sub(pattern, mask, line) for line in lines]
    return unordered(CommandOutput(output.status, lines))


def own_token(port: int) -> str:
    """Returns the HMAC of a new token of alice."""
    settings = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "a",
    }
    with AdminClient(settings) as admin:
        token = admin.create_delegation_token(["User:r"], max_lifetime_ms=10**7).result(30)
        assert (token.owner, token.requester, token.renewers) == (
            "User:alice",
            "User:alice",
            ("User:r",),
        )
        assert token.password not in repr(token)
        period_ms = token.max_timestamp_ms - token.issue_timestamp_ms
        assert period_ms == 10**7

        def described() -> list[DelegationTokenDescription]:
            tokens = admin.describe_delegation_token(["User:alice"]).result(30)
            return [each for each in tokens if each.token_id == token.token_id]

        wait_until(described, "the broker has the token", 30)
        expiry_ms = admin.renew_delegation_token(token.hmac, renew_period_ms=10**6).result(30)
        wait_until(lambda: described()[0].expiry_timestamp_ms == expiry_ms, "it is renewed", 30)
        assert described()[0].hmac == token.hmac
        shorter_ms = admin.expire_delegation_token(token.hmac, expiry_period_ms=10**5).result(30)
        assert shorter_ms < expiry_ms
        return token.password
