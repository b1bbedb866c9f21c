"""kafka-acls, kafka-delegation-tokens, kafka-client-metrics, and users and quotas of kafka-configs.

What Kafka's own commands print is compared in tests/conformance.
"""

from pathlib import Path

import pytest
from tests.cli.kafka.conftest import Command

A = ("--allow-principal", "User:a")
T = ("--topic", "t")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--add", "--list"), "Command must include exactly one action: --list, --add, --remove."),
        (("--add", *A), "You must provide at least one resource"),
        (("--add", *T), "You must specify one of: --allow-principal, --deny-principal"),
        (("--list", *A), 'Option "[list]" can\'t be used with option "[allow-principal]"'),
        (("--add", *A, *T, "--producer", "--operation", "Read"), '"[operation]"'),
        (("--add", *A, "--producer", "--group", "g"), "With --producer you must specify a --topic"),
        (("--add", *A, *T, "--consumer"), "With --consumer you must specify a --topic and a --gro"),
        (("--add", *A, *T, "--idempotent"), "--idempotent option is only available if --producer"),
        (("--add", *A, *T, "--principal", "User:b"), "--principal option is only available if"),
        (("--add", *A, *T, "--resource-pattern-type", "match"), "value of 'MATCH' is not valid"),
        (("--add", *A, *T, "--operation", "ClusterAction"), "TOPIC only supports operations"),
    ],
)
def test_invalid_options_of_acls_print_the_help(
    kafka: Command, arguments: tuple[str, ...], error: str
) -> None:
    result = kafka("kafka-acls", *arguments)
    assert (result.status, result.out) == (1, "")
    assert error in result.err.splitlines()[0]
    assert "--resource-pattern-type" in result.err


def test_acls_need_one_connection(run: Command) -> None:
    assert "One of --bootstrap-server" in run("kafka-acls", "--list").err


def test_a_principal_of_acls_is_checked(kafka: Command) -> None:
    result = kafka("kafka-acls", "--add", "--allow-principal", "a", *T)
    assert result.status == 1
    assert result.out == (
        "Error while executing ACL command: expected a string in format "
        "principalType:principalName but got a\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--create", "--describe"), "Command must include exactly one action: --create, --renew"),
        (("--create",), 'Missing required argument "[max-life-time-period]"'),
        (("--renew", "--renew-time-period", "1"), 'Missing required argument "[hmac]"'),
        (("--expire", "--hmac", "x"), 'Missing required argument "[expiry-time-period]"'),
        (("--describe", "--hmac", "x"), 'Option "[describe]" can\'t be used with option "[hmac]"'),
    ],
)
def test_invalid_options_of_tokens_print_the_help(
    kafka: Command, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    (tmp_path / "client.properties").touch()
    config = ("--command-config", tmp_path / "client.properties")
    result = kafka("kafka-delegation-tokens", *config, *arguments)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(error)
    result = kafka("kafka-delegation-tokens", *arguments)
    assert result.err.startswith('Missing required argument "[command-config]"')


def test_clients_of_a_plaintext_listener_have_no_tokens(kafka: Command, tmp_path: Path) -> None:
    (tmp_path / "client.properties").touch()
    config = ("--command-config", tmp_path / "client.properties")
    for arguments in (
        ("--create", "--max-life-time-period", "-1"),
        ("--renew", "--hmac", "eA==", "--renew-time-period", "-1"),
        ("--expire", "--hmac", "eA==", "--expiry-time-period", "-1"),
        ("--describe",),
    ):
        result = kafka("kafka-delegation-tokens", *config, *arguments)
        assert result.status == 1
        assert "Delegation Token requests are not allowed" in result.err
    malformed = ("--renew", "--hmac", "?", "--renew-time-period", "-1")
    assert kafka("kafka-delegation-tokens", *config, *malformed).err == "The HMAC is not base64.\n"


def test_subscriptions_of_client_metrics(kafka: Command) -> None:
    values = ("--metrics", "org.apache.", "--interval", "1000", "--match", "client_id=a.*")
    altered = kafka("kafka-client-metrics", "--alter", "--name", "sub", *values)
    assert altered.out == "Altered client metrics config for sub.\n"
    kafka("kafka-client-metrics", "--alter", "--name", "sub", "--interval", "")
    assert kafka("kafka-client-metrics", "--describe").lines == [
        "Client metrics configs for sub are:",
        "  interval.ms=300000",
        "  match=client_id=a.*",
        "  metrics=org.apache.",
    ]
    generated = kafka("kafka-client-metrics", "--alter", "--generate-name", "--metrics", "*")
    name = generated.out.removesuffix(".\n").rpartition(" ")[2]
    assert sorted(kafka("kafka-client-metrics", "--list").lines) == sorted([name, "sub"])
    for each in name, "sub":
        deleted = kafka("kafka-client-metrics", "--delete", "--name", each)
        assert deleted.out == f"Deleted client metrics config for {each}.\n"
    assert kafka("kafka-client-metrics", "--list").out == ""
    assert kafka("kafka-client-metrics", "--describe", "--name", "sub").out == (
        "The client metric resource sub doesn't exist and doesn't have dynamic config.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--alter", "--metrics", "a"), "One of --name or --generate-name must be specified"),
        (("--delete",), "A client metrics resource name must be specified with --delete."),
        (("--alter", "--name", "s", "--interval", "x"), "Invalid interval value. Enter an integer"),
        (("--describe", "--metrics", "a"), 'Option "[describe]" can\'t be used with option'),
        (("--list", "--delete"), "Command must include exactly one action"),
    ],
)
def test_invalid_options_of_client_metrics_are_errors(
    kafka: Command, arguments: tuple[str, ...], error: str
) -> None:
    result = kafka("kafka-client-metrics", *arguments)
    assert result.status == 1
    assert result.err.startswith(error)


def test_quotas_are_set_described_and_removed(kafka: Command) -> None:
    alter = ("kafka-configs", "--alter", "--user", "alice")
    added = kafka(*alter, "--add-config", "producer_byte_rate=1024")
    assert added.out == "Completed updating config for user alice.\n"
    added = kafka("kafka-configs", "--alter", "--entity-type", "clients", "--entity-default",
                  "--add-config", "request_percentage=25")  # fmt: skip
    assert added.out == "Completed updating default config for clients in the cluster.\n"
    described = kafka("kafka-configs", "--describe", "--user", "alice")
    assert described.lines == [
        "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0"
    ]
    described = kafka("kafka-configs", "--describe", "--entity-type", "clients")
    assert described.lines == [
        "Quota configs for the default client-id are request_percentage=25.0"
    ]
    kafka("kafka-configs", "--alter", "--client-defaults", "--delete-config", "request_percentage")
    kafka(*alter, "--delete-config", "producer_byte_rate")
    assert kafka("kafka-configs", "--describe", "--entity-type", "clients").out == ""
    invalid = kafka("kafka-configs", "--alter", "--ip", "here", "--add-config",
                    "connection_creation_rate=1")  # fmt: skip
    assert (invalid.status, invalid.err) == (1, "here is not an IP address.\n")


def test_scram_users_are_added_described_and_removed(kafka: Command) -> None:
    alter = ("kafka-configs", "--alter", "--user", "bob")
    added = kafka(*alter, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    assert added.out == "Completed updating config for user bob.\n"
    described = kafka("kafka-configs", "--describe", "--user", "bob").lines
    assert described == [
        "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-256=iterations=8192"
    ]
    kafka(*alter, "--delete-config", "SCRAM-SHA-256")
    assert kafka("kafka-configs", "--describe", "--user", "bob").out == ""
    wrong = kafka(*alter, "--add-config", "SCRAM-SHA-256=[pasword=secret]")
    assert wrong.status == 1
    assert "secret" not in wrong.err
