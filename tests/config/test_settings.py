"""The settings of a node: types, defaults, consistency, and all problems at once."""

import pytest
from tests.config.conftest import NODE, Configure

from barnabas.config import (
    BrokerSettings,
    ConfigError,
    Listener,
    SecurityProtocol,
    broker,
    topic,
    unknown_names,
)
from barnabas.config.addresses import Endpoint, Voter

PLAINTEXT = SecurityProtocol.PLAINTEXT


def test_explicit_values_are_typed_and_others_have_defaults(configure: Configure) -> None:
    settings = configure({"num.partitions": "3", "log.dirs": "/a, /b"})
    assert settings["num.partitions"] == 3
    assert settings["auto.create.topics.enable"] is True
    assert settings.node_id == settings["broker.id"] == 1
    assert settings.is_broker
    assert settings.is_controller
    assert settings.log_dirs == ("/a", "/b")
    assert settings.metadata_log_dir == "/a"
    assert not settings.warnings


def test_log_dir_is_used_only_without_log_dirs(configure: Configure) -> None:
    assert configure({"log.dir": "/c"}).log_dirs == ("/c",)
    assert configure({"log.dir": "/c", "log.dirs": "/a"}).log_dirs == ("/a",)
    assert configure({"metadata.log.dir": "/m"}).metadata_log_dir == "/m"


def test_broker_id_is_an_old_name_of_node_id(configure: Configure) -> None:
    assert configure({"node.id": None, "broker.id": "3"}).node_id == 3


def test_controller_listeners_are_not_advertised_to_clients(configure: Configure) -> None:
    settings = configure()
    client = Listener("PLAINTEXT", "127.0.0.1", 9092, PLAINTEXT)
    controller = Listener("CONTROLLER", "127.0.0.1", 9093, PLAINTEXT)
    assert settings.listeners == (client, controller)
    assert settings.controller_listeners == (controller,)
    assert settings.advertised_listeners == (client,)
    assert settings.inter_broker_listener_name == "PLAINTEXT"
    assert str(client) == "PLAINTEXT://127.0.0.1:9092"


def test_controller_listeners_have_their_advertised_address_for_other_nodes(
    configure: Configure,
) -> None:
    bound = Listener("CONTROLLER", "127.0.0.1", 9093, PLAINTEXT)
    assert configure().advertised_controller_listeners == (bound,)
    advertised = "PLAINTEXT://example.org:9092,CONTROLLER://example.org:443"
    settings = configure({"advertised.listeners": advertised})
    public = Listener("CONTROLLER", "example.org", 443, PLAINTEXT)
    assert settings.advertised_controller_listeners == (public,)
    assert settings.controller_listeners == (bound,)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
@pytest.mark.parametrize(
    "controllers",
    [
        {"controller.quorum.bootstrap.servers": "localhost:9093"},
        {
            "controller.quorum.bootstrap.servers": None,
            "controller.quorum.voters": "1@127.0.0.1:9093",
        },
    ],
)
def test_a_listener_on_all_interfaces_is_advertised_as_localhost_if_the_controllers_are_local(
    configure: Configure, host: str, controllers: dict[str, str | None]
) -> None:
    listeners = f"PLAINTEXT://{host}:9092,CONTROLLER://localhost:9093"
    settings = configure({"listeners": listeners, **controllers})
    assert settings.listeners[0].host == host.strip("[]")
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092, PLAINTEXT),)


def test_a_listener_may_have_its_own_name_protocol_and_advertised_address(
    configure: Configure,
) -> None:
    settings = configure(
        {
            "listeners": "inside://[::1]:9092,outside://:9094,CONTROLLER://:9093",
            "advertised.listeners": "INSIDE://[::1]:9092,OUTSIDE://example.org:443",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,outside:ssl,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    assert settings.listeners[0] == Listener("INSIDE", "::1", 9092, PLAINTEXT)
    assert str(settings.listeners[0]) == "INSIDE://[::1]:9092"
    assert settings.advertised_listeners[1] == Listener(
        "OUTSIDE", "example.org", 443, SecurityProtocol.SSL
    )
    assert settings.inter_broker_listener_name == "INSIDE"


def test_one_ipv4_and_one_ipv6_listener_may_share_a_port(configure: Configure) -> None:
    configure({"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:9092"})
    configure({"listeners": "PLAINTEXT://:0,CONTROLLER://:0"})


def test_voters_are_parsed(configure: Configure) -> None:
    settings = configure({"controller.quorum.voters": "1@a:9093,2@b:9093"})
    assert settings.voters == (Voter(1, Endpoint("a", 9093)), Voter(2, Endpoint("b", 9093)))


def test_a_listener_can_have_its_own_value(configure: Configure) -> None:
    settings = configure(
        {
            "max.connections": "100",
            "listener.name.plaintext.max.connections": "7",
            "listener.name.plaintext.scram-sha-256.sasl.jaas.config": "module required;",
        }
    )
    assert settings.for_listener("PLAINTEXT", "max.connections") == 7
    assert settings.for_listener("CONTROLLER", "max.connections") == 100
    jaas = settings.for_listener("PLAINTEXT", "sasl.jaas.config", mechanism="SCRAM-SHA-256")
    assert jaas.reveal() == "module required;"
    assert settings.for_listener("PLAINTEXT", "sasl.jaas.config", mechanism="PLAIN") is None


def test_a_misspelt_name_is_a_warning_with_a_suggestion(configure: Configure) -> None:
    (warning,) = configure({"log.retension.ms": "5"}).warnings
    assert "log.retension.ms" in warning
    assert "did you mean log.retention.ms?" in warning


def test_names_of_plugin_settings_are_no_warnings(configure: Configure) -> None:
    assert not configure({"super.users": "User:a"}).warnings


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("zookeeper.connect", "there is only KRaft, without ZooKeeper; set process.roles"),
        ("zookeeper.session.timeout.ms", "there is only KRaft"),
        ("control.plane.listener.name", "use controller.listener.names"),
        ("inter.broker.protocol.version", "kafka-features.sh upgrade --release-version"),
        ("log.message.format.version", "there is only record format v2"),
        ("log.message.timestamp.difference.max.ms", "use log.message.timestamp.before.max.ms"),
    ],
)
def test_a_setting_that_kafka_has_removed_is_a_warning_with_what_to_do_instead(
    name: str, instead: str, configure: Configure
) -> None:
    (warning,) = configure({name: "x"}).warnings
    assert warning.startswith(f"{name} is not a known setting and has no effect; Kafka has removed")
    assert instead in warning


def test_a_value_without_a_name_is_a_warning(configure: Configure) -> None:
    (warning,) = configure({"": "x"}).warnings
    assert warning == "a line that begins with = has no name and no effect: write name=value"


def test_no_removed_setting_exists() -> None:
    removed = unknown_names._REMOVED_BROKER | unknown_names._REMOVED_TOPIC
    assert not removed.keys() & (broker.SETTINGS.keys() | topic.SETTINGS.keys())
    for prefix in unknown_names._REMOVED_BROKER_PREFIXES:
        assert not [name for name in broker.SETTINGS if name.startswith(prefix)]


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("Fecth", "Fetch"),
        ("FETCH", "Fetch"),
        ("startingoffset", "startingOffsets"),
        ("retention_ms", "retention.ms"),
        ("something else", None),
    ],
)
def test_the_most_similar_name_is_found_whatever_its_case_and_separator(
    name: str, similar: str | None
) -> None:
    known = ["Fetch", "Produce", "startingOffsets", "retention.ms", "retention.bytes"]
    assert unknown_names.find_similar(name, known) == similar


def test_a_file_for_zookeeper_is_rejected_with_a_line_about_kraft() -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerSettings.from_properties({"broker.id": "0", "zookeeper.connect": "localhost:2181"})
    assert "there is only KRaft, without ZooKeeper" in raised.value.problems[-1]


def test_a_misspelt_required_setting_is_named_with_a_suggestion() -> None:
    properties = dict(NODE)
    properties["process.role"] = properties.pop("process.roles")
    with pytest.raises(ConfigError) as raised:
        BrokerSettings.from_properties(properties)
    assert "did you mean process.roles?" in raised.value.problems[-1]


def test_settings_without_effect_are_warnings(configure: Configure) -> None:
    (warning,) = configure({"security.providers": "p", "num.io.threads": "16"}).warnings
    assert warning.startswith("security.providers has no effect yet: ")


def test_a_heartbeat_that_is_too_rare_is_a_warning(configure: Configure) -> None:
    (warning,) = configure({"broker.heartbeat.interval.ms": "5000"}).warnings
    assert "broker.session.timeout.ms" in warning


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerSettings.from_properties(
            NODE | {"num.partitions": "0", "compression.type": "zip", "log.roll.ms": "0"}
        )
    problems = "\n".join(raised.value.problems)
    assert len(raised.value.problems) == 3
    assert str(raised.value) == problems
    assert "Invalid value 0 for configuration num.partitions: Value must be at least 1" in problems
    assert "zip for configuration compression.type" in problems
    assert "log.roll.ms (0) must be at least 1" in problems


def test_missing_required_settings_are_named() -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerSettings.from_properties({})
    assert [problem.split()[0] for problem in raised.value.problems] == [
        "controller.listener.names",
        "node.id",
        "process.roles",
    ]


def test_a_problem_never_shows_a_password() -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerSettings.from_properties({"ssl.key.password": "hunter2"})
    assert "hunter2" not in str(raised.value)


SSL_LISTENERS = {"listeners": "SSL://:9092,CONTROLLER://:9093"}
BROKER_ONLY = {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
INVALID = [
    ({"broker.id": "3"}, "broker.id (3) must be the same as node.id (1)"),
    ({"process.roles": "king"}, "must be one of: broker, controller"),
    ({"listeners": "PLAINTEXT://:9092"}, "controller.listener.names (CONTROLLER) must all be in"),
    ({"listeners": "CONTROLLER://:9093"}, "no listener for clients"),
    ({"listeners": "PLAINTEXT//:1,CONTROLLER://:9093"}, "not of the form NAME://host:port"),
    ({"listeners": "PLAINTEXT://h:99999,CONTROLLER://:9093"}, "not of the form NAME://host:port"),
    ({"listeners": "FOO://:9092,CONTROLLER://:9093"}, "No security protocol defined for listener"),
    ({"listeners": "PLAINTEXT://:9093,CONTROLLER://:9093"}, "share port 9093"),
    ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:3"}, "PLAINTEXT twice"),
    (
        {
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093",
            "controller.quorum.bootstrap.servers": "10.0.0.1:9093",
        },
        "cannot reach 0.0.0.0",
    ),
    ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot reach 0.0.0.0"),
    (SSL_LISTENERS, "No security protocol defined for listener CONTROLLER"),
    ({"advertised.listeners": "SSL://h:1"}, "SSL, which is not in listeners"),
    ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "TLS is not a security protocol"),
    ({"listener.security.protocol.map": "PLAINTEXT"}, "not of the form NAME:PROTOCOL"),
    ({"inter.broker.listener.name": "CONTROLLER"}, "must be one of the advertised listeners"),
    (
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "not both",
    ),
    ({"early.start.listeners": "FOO"}, "early.start.listeners has FOO"),
    ({"process.roles": "broker"}, "only a broker may have none of controller.listener.names"),
    ({"process.roles": "controller"}, "only a controller may have no names but"),
    (BROKER_ONLY | {"controller.quorum.voters": "1@h:1"}, "which is not a controller"),
    ({"controller.quorum.voters": "2@h:1"}, "must include node.id 1"),
    ({"controller.quorum.bootstrap.servers": None}, "Set controller.quorum.bootstrap.servers or"),
    ({"controller.quorum.bootstrap.servers": "h"}, "not of the form host:port"),
    ({"log.retention.hours": "0"}, "log.retention.hours (0) must be -1 or at least 1"),
    ({"log.retention.minutes": "0"}, "log.retention.minutes (0)"),
    ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms (-1) must be at least 0"),
    ({"log.cleaner.threads": "0"}, "log.cleaner.enable=false stops cleaning"),
    ({"log.cleaner.io.buffer.load.factor": "1.1"}, "must be above 0 and at most 1"),
    ({"log.cleaner.io.max.bytes.per.second": "0"}, "(0.0) must be above 0"),
    ({"log.cleaner.dedupe.buffer.size": "1000"}, "at least 1048576 for each"),
    ({"cordoned.log.dirs": "/x"}, "/x, which log.dirs does not have"),
    ({"cordoned.log.dirs": "*,/x"}, "either * or a list"),
    ({"queued.max.request.bytes": "100"}, "at least socket.request.max.bytes"),
    ({"max.connections.per.ip": "0"}, "only with max.connections.per.ip.overrides"),
    ({"max.connections.per.ip.overrides": "h"}, "h is not of the form host:count"),
    ({"offsets.topic.compression.codec": "9"}, "must be 0 (none), 1 (gzip)"),
    ({"group.coordinator.rebalance.protocols": "consumer"}, "must include classic"),
    ({"group.consumer.assignors": "range,com.acme.Ours"}, "com.acme.Ours, which cannot be loaded"),
    ({"replica.lag.time.max.ms": "100"}, "replica.fetch.wait.max.ms (500) must be at most"),
    ({"group.share.delivery.count.limit": "2", "group.share.min.delivery.count.limit": "3"}, "(3)"),
    ({"group.streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas (2)"),
    ({"listener.name.plaintext.max.connections": "x"}, "listener.name.plaintext.max.connections"),
    ({"barnabas.metrics.listener": "9100"}, "not of the form host:port"),
]


@pytest.mark.parametrize(("changes", "message"), INVALID, ids=[message for _, message in INVALID])
def test_settings_that_cannot_run_raise_an_error_with_the_reason(
    configure: Configure, changes: dict[str, str | None], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        configure(changes)
    assert message in str(raised.value)


def test_a_broker_alone_and_a_controller_alone_can_run(configure: Configure) -> None:
    assert not configure(dict(BROKER_ONLY)).is_controller
    controller = configure({"process.roles": "controller", "listeners": "CONTROLLER://:9093"})
    assert not controller.is_broker
    assert controller.advertised_listeners == ()
