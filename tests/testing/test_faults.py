"""Injected faults look to clients like those of a broker."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.simulation.world.clock import SimulatedLoop
from tests.testing.clients import DEADLINE_S, consumer, poll_until, produce, producer, values

from barnabas.testing import Broker
from barnabas.testing.faults import DelayAction, Faults
from barnabas.testing.requests import send_request as ask_port
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.groups import ListGroupsRequest
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


def test_an_error_is_returned_times_times_and_clients_retry(broker: Broker) -> None:
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
    assert produce(broker.bootstrap_servers, "retried", b"one", retry_backoff_ms=1) == []
    assert fault.fired == 3
    assert values(broker.bootstrap_servers, "retried", 1) == [b"one"]


def test_a_fatal_error_reaches_the_producer(broker: Broker) -> None:
    with broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED"):
        failures = produce(broker.bootstrap_servers, "forbidden", b"one")
    assert [failure.name() for failure in failures] == ["TOPIC_AUTHORIZATION_FAILED"]
    assert produce(broker.bootstrap_servers, "forbidden", b"two") == []


def test_only_matching_requests_fail(broker: Broker) -> None:
    fault = broker.faults.fail(
        "Produce",
        "MESSAGE_TOO_LARGE",
        when=lambda request: any(topic.name == "chosen" for topic in request.topic_data),
    )
    assert produce(broker.bootstrap_servers, "spared", b"one") == []
    assert [error.name() for error in produce(broker.bootstrap_servers, "chosen", b"one")] == [
        "MSG_SIZE_TOO_LARGE"
    ]
    assert fault.fired == 1


def test_faults_of_one_api_apply_in_order(broker: Broker) -> None:
    broker.faults.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE", times=1)
    broker.faults.fail("ListGroups", "COORDINATOR_LOAD_IN_PROGRESS", times=1)
    codes = [ErrorCode.of(ask(broker, ListGroupsRequest()).error_code) for _ in range(3)]
    assert codes == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NONE,
    ]


def test_an_error_is_in_every_error_field_of_the_response(broker: Broker) -> None:
    for name in "ListOffsets", "Metadata", "FindCoordinator":
        broker.faults.fail(name, "KAFKA_STORAGE_ERROR")
    topic = ListOffsetsTopic(
        name="orders", partitions=[ListOffsetsPartition(partition_index=index) for index in (0, 3)]
    )
    offsets = ask(broker, ListOffsetsRequest(topics=[topic])).topics[0]
    assert [
        (partition.partition_index, partition.error_code) for partition in offsets.partitions
    ] == [
        (0, ErrorCode.KAFKA_STORAGE_ERROR),
        (3, ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    topic = ask(broker, MetadataRequest(topics=[MetadataRequestTopic(name="orders")])).topics[0]
    assert (topic.name, topic.error_code) == ("orders", ErrorCode.KAFKA_STORAGE_ERROR)
    found = ask(broker, FindCoordinatorRequest(coordinator_keys=["group"])).coordinators[0]
    assert found.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_delay_affects_only_its_api(broker: Broker) -> None:
    fault = broker.faults.delay("ListGroups", 0.2, times=1)
    began_s = time.monotonic()
    ask(broker, ListGroupsRequest())
    assert time.monotonic() - began_s >= 0.2
    ask(broker, ListGroupsRequest())
    assert fault.fired == 1


def test_a_delayed_response_is_sent_when_the_fault_is_lifted(broker: Broker) -> None:
    fault = broker.faults.delay("Produce", 600)
    client = producer(broker.bootstrap_servers)
    client.produce("late", b"one")
    while not fault.fired:
        client.poll(0.01)
    assert len(client) == 1
    broker.faults.clear()
    assert client.flush(30) == 0


@pytest.mark.parametrize("released", ["before the handler", "in the handler"])
def test_a_response_is_not_delayed_if_the_fault_is_lifted_while_it_is_handled(
    released: str,
) -> None:
    delay = DelayAction(600)
    if released == "before the handler":
        delay.release()

    async def handle(request: object, call: object) -> object:
        if released == "in the handler":
            delay.release()
        return "response"

    async def handle_delayed() -> object:
        async with asyncio.timeout(DEADLINE_S):
            return await delay.handle(handle, None, None)

    assert asyncio.run(handle_delayed()) == "response"


def test_a_delay_counts_from_the_arrival_of_the_request() -> None:
    loop = SimulatedLoop()
    delay = DelayAction(60)

    async def handle(request: object, call: object) -> object:
        await asyncio.sleep(100)  # the clock moves while the request is handled
        return "response"

    async def handle_delayed() -> object:
        return await delay.handle(handle, None, None)

    try:
        assert loop.run_until_complete(handle_delayed()) == "response"
        assert loop.time() == pytest.approx(100)
    finally:
        loop.close()


def test_a_request_dropped_before_its_handler_has_no_effect(broker: Broker) -> None:
    fault = broker.faults.drop("Produce", times=1)
    client = producer(broker.bootstrap_servers, message_send_max_retries=0)
    client.produce("dropped", b"lost")
    client.flush(30)
    assert fault.fired == 1
    assert produce(broker.bootstrap_servers, "dropped", b"next") == []
    assert values(broker.bootstrap_servers, "dropped", 1) == [b"next"]


@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
def test_a_request_dropped_after_its_handler_is_deduplicated_on_retry(
    broker: Broker, idempotent: bool, copies: int
) -> None:
    topic = f"repeated-{idempotent}".lower()
    broker.faults.drop("Produce", times=1, after=True)
    assert produce(broker.bootstrap_servers, topic, b"one", enable_idempotence=idempotent) == []
    assert produce(broker.bootstrap_servers, topic, b"end") == []
    expected = [b"one"] * copies + [b"end"]
    assert values(broker.bootstrap_servers, topic, len(expected)) == expected


def test_a_full_disk_rejects_writes_and_serves_reads(broker: Broker) -> None:
    assert produce(broker.bootstrap_servers, "full", b"before") == []
    with broker.faults.fill_disk() as full:
        failures = produce(broker.bootstrap_servers, "full", b"refused", message_timeout_ms=500)
        assert len(failures) == 1
        assert values(broker.bootstrap_servers, "full", 1) == [b"before"]
        assert full.fired > 0
    assert produce(broker.bootstrap_servers, "full", b"after") == []
    assert values(broker.bootstrap_servers, "full", 2) == [b"before", b"after"]


def test_a_group_recovers_from_an_unavailable_coordinator(broker: Broker) -> None:
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


def test_faults_survive_a_restart() -> None:
    with Broker() as broker, broker.faults.fail("ListGroups", "UNKNOWN_SERVER_ERROR") as fault:
        broker.restart()
        assert ask(broker, ListGroupsRequest()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert fault.fired == 1


def test_unknown_names_are_reported_with_the_closest_name() -> None:
    faults = Faults()
    with pytest.raises(ValueError, match="Product is not an API; did you mean Produce"):
        faults.drop("Product")
    with pytest.raises(ValueError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        faults.fail("Produce", "NOT_LEADER_FOR_FOLLOWER")
    with pytest.raises(ValueError, match="Fecth is not an API; did you mean Fetch"):
        faults.request_counts["Fecth"]
    assert faults.request_counts["Fetch"] == 0


@pytest.mark.parametrize("seconds", ["soon", -1, float("nan"), float("inf"), None])
def test_a_delay_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(ValueError, match="is not a number of seconds"):
        Faults().delay("Fetch", seconds)


@pytest.mark.parametrize("options", [{"times": "twice"}, {"times": 0}, {"when": True}])
def test_a_fault_that_could_not_work_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Faults().drop("Fetch", **options)


def test_a_predicate_that_fails_is_reported_to_the_test(broker: Broker) -> None:
    with (
        pytest.raises(ValueError, match=r"when= failed: AttributeError\(.*asks"),
        broker.faults.drop("ListGroups", when=lambda request: request.asks) as fault,
    ):
        assert ask(broker, ListGroupsRequest()).error_code == ErrorCode.NONE
    with pytest.raises(ValueError, match="when= failed"):
        assert fault.fired == 0
