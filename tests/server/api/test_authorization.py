"""Produce, Fetch and Metadata for clients with some permissions. Other cases are compared with
Kafka: see tests/conformance/authorization."""

from typing import Any

import pytest
from tests.replication.world import World, batch_of
from tests.server.acls import ClientAcls
from tests.server.api.test_fetch import request as fetch_request
from tests.server.api.test_produce import request as produce_request

from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    topic_resource,
)
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.server.api import fetch, metadata, produce
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreateTopicsResponse

READ, WRITE = AclOperation.READ, AclOperation.WRITE
ORDERS, PARCELS = topic_resource("orders"), topic_resource("parcels")
TAF = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def acls(world: World) -> ClientAcls:
    world.create_topic("orders")
    world.create_topic("parcels")
    return ClientAcls(world)


def test_a_produce_request_appends_to_the_topics_that_the_client_may_write_to(
    world: World, acls: ClientAcls
) -> None:
    acls.allow(WRITE, ORDERS)
    batches = {("orders", 0): batch_of(b"1"), ("parcels", 0): batch_of(b"2")}
    response = world.request(produce.handle, produce_request(batches), 12)
    codes = {
        topic.name: [partition.error_code for partition in topic.partition_responses]
        for topic in response.responses
    }
    assert codes == {"orders": [0], "parcels": [TAF]}
    assert world.partition("orders").log.log_end_offset == 1
    assert world.partition("parcels").log.log_end_offset == 0


def test_a_produce_request_without_a_response_closes_the_connection_if_it_is_denied(
    world: World, acls: ClientAcls
) -> None:
    request = produce_request({("orders", 0): batch_of(b"1")}, acks=0)
    with pytest.raises(KafkaError) as error:
        world.request(produce.handle, request, 12)
    assert error.value.code is TAF


def test_transactional_batches_need_a_transactional_id(world: World, acls: ClientAcls) -> None:
    acls.allow(WRITE, ORDERS)
    records = batch_of(b"1", transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    with pytest.raises(KafkaError) as error:
        world.request(produce.handle, produce_request({("orders", 0): records}), 12)
    assert error.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def codes(response: Any) -> dict[str, int]:
    return {
        topic.topic: partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    }


def open_session(world: World, *topics: str) -> int:
    """Opens a session whose partitions are all caught up."""
    partitions = {(topic, 0): 0 for topic in topics}
    request = fetch_request(partitions, session_epoch=0, max_wait_ms=0)
    response = world.request(fetch.handle, request, 12)
    session_id: int = response.session_id
    for epoch in (1, 2):
        assert codes(next_fetch(world, session_id, epoch)) == {}
    return session_id


def next_fetch(world: World, session_id: int, epoch: int) -> Any:
    request = fetch_request({}, session_id=session_id, session_epoch=epoch, max_wait_ms=0)
    return world.request(fetch.handle, request, 12)


def test_a_revoked_permission_takes_effect_at_the_next_fetch_of_a_session(
    world: World, acls: ClientAcls
) -> None:
    acls.allow(READ, ORDERS)
    acls.allow(READ, PARCELS)
    session_id = open_session(world, "orders", "parcels")
    acls.revoke(READ, ORDERS)
    assert codes(next_fetch(world, session_id, 3)) == {"orders": TAF}
    assert codes(next_fetch(world, session_id, 4)) == {"orders": TAF}
    acls.allow(READ, ORDERS)
    assert codes(next_fetch(world, session_id, 5)) == {"orders": 0}


def test_records_are_not_returned_to_a_session_without_permission(
    world: World, acls: ClientAcls
) -> None:
    acls.allow(READ, ORDERS)
    session_id = open_session(world, "orders")
    acls.revoke(READ, ORDERS)
    world.append("orders", b"secret")
    response = next_fetch(world, session_id, 3)
    assert codes(response) == {"orders": TAF}
    assert not response.responses[0].partitions[0].records


def test_a_fetch_that_waits_returns_nothing_after_its_permission_is_revoked(
    world: World, acls: ClientAcls
) -> None:
    acls.allow(READ, ORDERS)
    acls.allow(READ, PARCELS)
    session_id = open_session(world, "orders", "parcels")
    in_session = fetch_request({}, session_id=session_id, session_epoch=3, max_wait_ms=500)
    alone = fetch_request({("orders", 0): 0, ("parcels", 0): 0}, max_wait_ms=500)
    waiting = [world.begin_request(fetch.handle, request, 12) for request in (in_session, alone)]
    assert not any(pending.is_complete for pending in waiting)
    acls.revoke(READ, ORDERS)
    world.append("parcels", b"open")
    world.append("orders", b"secret")
    for pending in waiting:
        pending.resume()
        assert codes(pending.response) == {"orders": TAF, "parcels": 0}
        by_topic = {topic.topic: topic.partitions[0] for topic in pending.response.responses}
        assert not by_topic["orders"].records
        assert by_topic["parcels"].records


def test_another_client_cannot_continue_a_session(
    world: World, acls: ClientAcls, monkeypatch: pytest.MonkeyPatch
) -> None:
    acls.allow(READ, ORDERS)
    session_id = open_session(world, "orders")
    monkeypatch.setattr("tests.replication.world.CLIENT", KafkaPrincipal(USER, "mallory"))
    request = fetch_request({}, session_id=session_id, session_epoch=3, max_wait_ms=500)
    pending = world.begin_request(fetch.handle, request, 12)
    assert pending.is_complete, "it must not wait for records that it may not read"
    assert codes(pending.response) == {"orders": TAF}


def test_a_follower_needs_a_permission_on_the_cluster(world: World, acls: ClientAcls) -> None:
    acls.allow(READ, ORDERS)
    request = fetch_request({("orders", 0): 0}, replica_id=2, max_wait_ms=0)
    assert codes(world.request(fetch.handle, request, 12)) == {"orders": TAF}
    acls.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert codes(world.request(fetch.handle, request, 12)) != {"orders": TAF}


class Creator:
    """A controller that records what is created."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def handle(self, request: Any, *, timeout_ms: int = 0) -> CreateTopicsResponse:
        self.names += [topic.name for topic in request.topics]
        return CreateTopicsResponse()


@pytest.mark.parametrize("on_cluster", [True, False])
def test_missing_topics_are_created_only_for_clients_that_may_create_them(
    world: World, acls: ClientAcls, on_cluster: bool
) -> None:
    creator: Any = Creator()
    world.broker.controller = creator
    for name in ("created", "described", "hidden"):
        if name != "hidden":
            acls.allow(AclOperation.DESCRIBE, topic_resource(name))
    if on_cluster:
        acls.allow(AclOperation.CREATE, CLUSTER)
    else:
        acls.allow(AclOperation.CREATE, topic_resource("created"))
    names = ["created", "hidden"] + ([] if on_cluster else ["described"])
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    response = world.request(metadata.handle, request, 12)
    assert creator.names == ["created"]
    errors = {topic.name: topic.error_code for topic in response.topics}
    assert errors.pop("created") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(errors.values()) == {TAF}
