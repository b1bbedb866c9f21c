"""Failures on order: clients meet them as they would meet the broker's own."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.testing.clients import DEADLINE_S, consumer, poll_until, produce, producer, values

from barnabas.testing import Broker
from barnabas.testing.requests import send_request as ask_port
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.schema import Message


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.faults.clear()


def ask(broker: Broker, request: Message) -> Any:
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    version = api(request.API_KEY).stable_versions.max
    return ask_port(port, request, version, timeout_s=DEADLINE_S)


def test_an_error_comes_as_often_as_ordered_and_a_client_gets_over_it(broker: Broker) -> None:
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
    assert produce(broker.bootstrap_servers, "retried", b"one", retry_backoff_ms=1) == []
    assert fault.fired == 3
    assert values(broker.bootstrap_servers, "retried", 1) == [b"one"]


def test_an_error_that_is_not_retriable_reaches_who_produced(broker: Broker) -> None:
    with broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED"):
        failures = produce(broker.bootstrap_servers, "forbidden", b"one")
    assert [each.name() for each in failures] == ["TOPIC_AUTHORIZATION_FAILED"]
    assert produce(broker.bootstrap_servers, "forbidden", b"two") == []


def test_only_the_requests_that_are_meant_fail(broker: Broker) -> None:
    fault = broker.faults.fail(
        "Produce",
        "MESSAGE_TOO_LARGE",
        when=lambda request: any(each.name == "chosen" for each in request.topic_data),
    )
    assert produce(broker.bootstrap_servers, "spared", b"one") == []
    assert [each.name() for each in produce(broker.bootstrap_servers, "chosen", b"one")] == [
        "MSG_SIZE_TOO_LARGE"
    ]
    assert fault.fired == 1


def test_orders_for_one_api_strike_one_after_the_other(broker: Broker) -> None:
    broker.faults.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE", times=1)
    broker.faults.fail("ListGroups", "COORDINATOR_LOAD_IN_PROGRESS", times=1)
    codes = [ErrorCode.of(ask(broker, ListGroupsRequest()).error_code) for _ in range(3)]
    assert codes == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NONE,
    ]


def test_an_error_stands_where_the_api_has_its_errors(broker: Broker) -> None:
    for name in "ListOffsets", "Metadata", "FindCoordinator":
        broker.faults.fail(name, "KAFKA_STORAGE_ERROR")
    asked = ListOffsetsTopic(
        name="orders", partitions=[ListOffsetsPartition(partition_index=each) for each in (0, 3)]
    )
    offsets = ask(broker, ListOffsetsRequest(topics=[asked])).topics[0]
    assert [(each.partition_index, each.error_code) for each in offsets.partitions] == [
        (0, ErrorCode.KAFKA_STORAGE_ERROR),
        (3, ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    topic = ask(broker, MetadataRequest(topics=[MetadataRequestTopic(name="orders")])).topics[0]
    assert (topic.name, topic.error_code) == ("orders", ErrorCode.KAFKA_STORAGE_ERROR)
    found = ask(broker, FindCoordinatorRequest(coordinator_keys=["group"])).coordinators[0]
    assert found.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_delayed_answer_is_late_and_the_others_are_not(broker: Broker) -> None:
    fault = broker.faults.delay("ListGroups", 0.2, times=1)
    began_s = time.monotonic()
    ask(broker, ListGroupsRequest())
    assert time.monotonic() - began_s >= 0.2
    ask(broker, ListGroupsRequest())
    assert fault.fired == 1


def test_an_answer_held_back_leaves_when_the_fault_is_lifted(broker: Broker) -> None:
    fault = broker.faults.delay("Produce", 600)
    client = producer(broker.bootstrap_servers)
    client.produce("late", b"one")
    while not fault.fired:
        client.poll(0.01)
    assert len(client) == 1
    broker.faults.clear()
    assert client.flush(30) == 0


def test_a_request_dropped_before_it_is_carried_out_leaves_no_trace(broker: Broker) -> None:
    fault = broker.faults.drop("Produce", times=1)
    client = producer(broker.bootstrap_servers, message_send_max_retries=0)
    client.produce("dropped", b"lost")
    client.flush(30)
    assert fault.fired == 1
    assert produce(broker.bootstrap_servers, "dropped", b"next") == []
    assert values(broker.bootstrap_servers, "dropped", 1) == [b"next"]


@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
def test_what_was_dropped_afterwards_is_there_when_it_is_sent_again(
    broker: Broker, idempotent: bool, copies: int
) -> None:
    topic = f"repeated-{idempotent}".lower()
    broker.faults.drop("Produce", times=1, after=True)
    assert produce(broker.bootstrap_servers, topic, b"one", enable_idempotence=idempotent) == []
    assert produce(broker.bootstrap_servers, topic, b"end") == []
    expected = [b"one"] * copies + [b"end"]
    assert values(broker.bootstrap_servers, topic, len(expected)) == expected


def test_a_full_disk_takes_no_records_and_gives_those_it_has(broker: Broker) -> None:
    assert produce(broker.bootstrap_servers, "full", b"before") == []
    with broker.faults.fill_disk() as full:
        failures = produce(broker.bootstrap_servers, "full", b"refused", message_timeout_ms=500)
        assert len(failures) == 1
        assert values(broker.bootstrap_servers, "full", 1) == [b"before"]
        assert full.fired > 0
    assert produce(broker.bootstrap_servers, "full", b"after") == []
    assert values(broker.bootstrap_servers, "full", 2) == [b"before", b"after"]


def test_a_group_gets_over_a_coordinator_that_is_not_there(broker: Broker) -> None:
    broker.create_topic("grouped")
    broker.faults.fail("JoinGroup", "COORDINATOR_NOT_AVAILABLE", times=2)
    client = consumer(broker.bootstrap_servers, "coordinated")
    client.subscribe(["grouped"])
    poll_until(client, lambda: bool(client.assignment()))
    client.close()


def test_requests_are_counted_by_api() -> None:
    with Broker() as broker:
        assert broker.requests["ListGroups"] == 0
        for _ in range(3):
            ask(broker, ListGroupsRequest())
        assert broker.requests["ListGroups"] == 3


def test_faults_last_over_a_restart() -> None:
    with Broker() as broker, broker.faults.fail("ListGroups", "UNKNOWN_SERVER_ERROR") as fault:
        broker.restart()
        assert ask(broker, ListGroupsRequest()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert fault.fired == 1


def test_names_that_are_not_known_are_told_with_the_nearest() -> None:
    faults = Broker().faults
    with pytest.raises(ValueError, match="Product is not an API; did you mean Produce"):
        faults.drop("Product")
    with pytest.raises(ValueError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        faults.fail("Produce", "NOT_LEADER_FOR_FOLLOWER")
