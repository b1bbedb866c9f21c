"""A broker in the process of the test: isolated, restartable, and removed at the end."""

import asyncio
import logging
import socket
from functools import partial
from pathlib import Path

import pytest
from tests.testing.clients import DEADLINE_S, produce, producer, values

from barnabas.testing import Broker, BrokerError, Cluster
from barnabas.testing.ports import free_port
from barnabas.testing.requests import fetch_metadata


def test_clients_produce_and_consume() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker.bootstrap_servers, "orders", b"one", b"two")
        assert values(broker.bootstrap_servers, "orders", 2) == [b"one", b"two"]


def test_a_closed_broker_leaves_no_files_or_threads() -> None:
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        assert any(broker.directory.iterdir())
    assert not broker.directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_a_given_directory_is_kept(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        produce(broker.bootstrap_servers, "orders", b"kept")
    with Broker(directory=tmp_path) as broker:
        assert values(broker.bootstrap_servers, "orders", 1) == [b"kept"]


def test_a_broker_is_an_async_context_manager() -> None:
    async def live() -> None:
        async with Broker() as broker:
            host, port = broker.bootstrap_servers.split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()

    asyncio.run(live())


def test_a_restart_keeps_the_port_and_the_records() -> None:
    with Broker() as broker:
        before = broker.bootstrap_servers
        produce(broker.bootstrap_servers, "orders", b"before")
        broker.restart()
        assert broker.bootstrap_servers == before
        produce(broker.bootstrap_servers, "orders", b"after")
        assert values(broker.bootstrap_servers, "orders", 2) == [b"before", b"after"]


def test_a_port_taken_in_the_meantime_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as first:
        taken = int(first.bootstrap_servers.rpartition(":")[2])
        offered = [taken, free_port()]
        monkeypatch.setattr("barnabas.testing.broker.free_port", lambda: offered.pop(0))
        with Broker() as second:
            assert second.bootstrap_servers != first.bootstrap_servers
        with pytest.raises(BrokerError, match="choose another port"):
            Broker(port=taken).start()


def test_two_brokers_do_not_see_each_other() -> None:
    with Broker() as first, Broker() as second:
        produce(first.bootstrap_servers, "orders", b"first")
        produce(second.bootstrap_servers, "orders", b"second")
        assert values(first.bootstrap_servers, "orders", 1) == [b"first"]
        assert values(second.bootstrap_servers, "orders", 1) == [b"second"]


def test_twenty_brokers_run_in_one_process() -> None:
    brokers = [Broker().start() for _ in range(20)]
    try:
        for number, broker in enumerate(brokers):
            produce(broker.bootstrap_servers, "numbers", str(number).encode())
        assert len({broker.bootstrap_servers for broker in brokers}) == len(brokers)
    finally:
        for broker in brokers:
            broker.close()


def test_settings_are_those_of_server_properties() -> None:
    with Broker({"num.partitions": 3, "auto.create.topics.enable": True}) as broker:
        produce(broker.bootstrap_servers, "orders", b"1")
        known = producer(broker.bootstrap_servers).list_topics("orders", DEADLINE_S)
        assert len(known.topics["orders"].partitions) == 3


def test_a_topic_has_num_partitions_unless_a_test_says_otherwise() -> None:
    with Broker({"num.partitions": 3}) as broker:
        broker.create_topic("orders")
        broker.create_topic("events", partitions=2)
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        assert sorted(fetch_metadata(port).partitions) == [
            ("events", 0),
            ("events", 1),
            ("orders", 0),
            ("orders", 1),
            ("orders", 2),
        ]


def test_a_topic_has_the_given_partitions_and_configs() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=4, config={"retention.ms": 1000})
        with pytest.raises(BrokerError, match=r"orders: TOPIC_ALREADY_EXISTS"):
            broker.create_topic("orders")
        with pytest.raises(BrokerError, match=r"INVALID_CONFIG.*retention\.ms"):
            broker.create_topic("others", config={"retention.ms": -5})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"num.partitions": "many"}, r"num\.partitions"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://256.0.0.1:0"}, r"CONTROLLER"),
    ],
)
def test_a_broker_that_cannot_start_says_why(settings: dict[str, str], reason: str) -> None:
    broker = Broker(settings)
    with pytest.raises(BrokerError, match=reason), broker:
        pytest.fail("it started")
    assert not broker.directory.exists()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("num.partition", "num.partitions"),
        ("auto_create_topics_enable", "auto.create.topics.enable"),
    ],
)
def test_an_unknown_setting_is_an_error_with_the_nearest_known_name(name: str, known: str) -> None:
    for make in Broker, partial(Cluster, 1):
        with pytest.raises(BrokerError, match=f"{name} is not a setting .*did you mean {known}\\?"):
            make(settings={name: 3})


def test_an_unknown_topic_config_is_an_error_with_the_nearest_known_name() -> None:
    with Broker() as broker, pytest.raises(BrokerError, match=r"did you mean retention\.ms\?"):
        broker.create_topic("orders", config={"retention.mss": 1000})


def test_settings_of_plugins_and_listeners_are_accepted() -> None:
    plugins = {"listener.name.controller.ssl.keystore.type": "PEM", "my.other": 1}
    with pytest.raises(BrokerError, match=r"^my\.other is not a setting of a broker$"):
        Broker(plugins)


def test_a_broker_that_is_not_running_says_so() -> None:
    with pytest.raises(BrokerError, match="is not running"):
        Broker().create_topic("orders")
    with Broker() as broker, pytest.raises(BrokerError, match="is already running"):
        broker.start()


def test_log_levels_are_restored_after_the_last_broker() -> None:
    logger = logging.getLogger("barnabas.node")
    before = logger.level
    with Broker(), Broker():
        assert logger.getEffectiveLevel() >= logging.WARNING
    assert logger.level == before


def test_a_request_that_fails_as_a_whole_is_a_broker_error() -> None:
    with Broker({"delete.topic.enable": "false"}) as broker:
        broker.create_topic("kept")
        with pytest.raises(BrokerError, match="TOPIC_DELETION_DISABLED"):
            broker.delete_topic("kept")
