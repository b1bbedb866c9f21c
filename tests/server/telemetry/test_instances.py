"""When clients may ask what to push, and push it: the checks of KIP-714 in their order."""

from collections.abc import Mapping

import pytest

from barnabas.config import ConfigResourceType
from barnabas.server.telemetry.instances import MIN_EXPIRY_MS, TelemetryInstances
from barnabas.server.telemetry.subscriptions import ClientMetricsSubscriptions, TelemetryClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.telemetry import PushTelemetryRequest
from barnabas.wire.uuid import ZERO

CLIENT = TelemetryClient("app", "librdkafka", "2.0", "10.0.0.1", "4242")
INTERVAL_MS = 1000
LZ4, UNKNOWN_CODEC = 3, 9


def subscriptions(**named: Mapping[str, str]) -> ClientMetricsSubscriptions:
    return ClientMetricsSubscriptions.of(
        {(ConfigResourceType.CLIENT_METRICS, name): config for name, config in named.items()}
    )


@pytest.fixture
def removed() -> list[bytes]:
    return []


@pytest.fixture
def instances(removed: list[bytes]) -> TelemetryInstances:
    instances = TelemetryInstances(removed.append, max_bytes=100, max_instances=3)
    instances.update(subscriptions(a={"metrics": "org.x", "interval.ms": str(INTERVAL_MS)}))
    return instances


def push(
    instances: TelemetryInstances,
    instance_id: bytes,
    subscription: int,
    now_ms: int,
    *,
    content: bytes = b"x",
    codec: int = LZ4,
    terminating: bool = False,
) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription,
        terminating=terminating,
        compression_type=codec,
        metrics=content,
    )
    try:
        instances.push(request, CLIENT, now_ms)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def get(instances: TelemetryInstances, instance_id: bytes, now_ms: int) -> ErrorCode:
    try:
        instances.get(instance_id, CLIENT, now_ms)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_new_client_gets_an_id_and_its_subscription(instances: TelemetryInstances) -> None:
    first = instances.get(ZERO, CLIENT, 0)
    second = instances.get(ZERO, CLIENT, 0)
    assert ZERO not in (first.instance_id, second.instance_id)
    assert first.instance_id != second.instance_id
    assert first.request.metrics == ("org.x",)
    assert first.request.interval_ms == INTERVAL_MS
    assert instances.get(first.instance_id, CLIENT, INTERVAL_MS).request == first.request


def test_the_subscriptions_that_match_a_client_are_united() -> None:
    both = subscriptions(
        a={"metrics": "a,b", "interval.ms": "5000", "match": "client_id=a.*"},
        b={"metrics": "b,c", "interval.ms": "2000", "match": "client_source_port=42.."},
        c={"metrics": "*", "match": "client_software_name=other"},
        d={"metrics": "*", "match": "client_id=ap"},
    )
    wanted = both.request_for("id", CLIENT, 7)
    assert (wanted.metrics, wanted.interval_ms) == (("a", "b", "c"), 2000)
    assert subscriptions(a={"metrics": "*,x"}).request_for("id", CLIENT, 7).metrics == ("*",)
    assert wanted.id != both.request_for("id", CLIENT, 8).id
    assert -(1 << 31) <= wanted.id < 1 << 31


def test_without_a_subscription_a_client_pushes_nothing_and_asks_again_in_five_minutes() -> None:
    wanted = ClientMetricsSubscriptions().request_for("id", CLIENT, 0)
    assert (wanted.metrics, wanted.interval_ms) == ((), 300_000)


def test_a_pattern_that_cannot_be_used_is_logged_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted = subscriptions(a={"metrics": "a", "match": r"client_id=(a)\1"}, b={"metrics": "b"})
    assert wanted.request_for("id", CLIENT, 0).metrics == ("b",)
    assert "Client metrics subscription a is not used" in caplog.text


def test_a_client_that_asks_too_early_is_throttled(instances: TelemetryInstances) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_ = instance.instance_id
    assert get(instances, id_, INTERVAL_MS - 1) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(instances, id_, INTERVAL_MS) is ErrorCode.NONE
    assert push(instances, id_, instance.request.id, INTERVAL_MS + 1) is ErrorCode.NONE
    assert get(instances, id_, 2 * INTERVAL_MS) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("wrong", ["subscription", "codec"])
def test_a_client_may_ask_at_once_after_an_error_that_tells_it_to(
    instances: TelemetryInstances, wrong: str
) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_, subscription = instance.instance_id, instance.request.id
    if wrong == "codec":
        error = push(instances, id_, subscription, 1, codec=UNKNOWN_CODEC)
        assert error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    else:
        error = push(instances, id_, subscription + 1, 1)
        assert error is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert get(instances, id_, 2) is ErrorCode.NONE


def test_changed_subscriptions_may_be_fetched_at_once(instances: TelemetryInstances) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_, before = instance.instance_id, instance.request.id
    instances.update(subscriptions(a={"metrics": "org.y", "interval.ms": "1000"}))
    assert push(instances, id_, before, 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert instances.get(id_, CLIENT, 2).request.metrics == ("org.y",)


def test_the_first_push_after_a_get_may_come_at_any_time_and_others_once_an_interval(
    instances: TelemetryInstances,
) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_, subscription = instance.instance_id, instance.request.id
    assert push(instances, id_, subscription, 1) is ErrorCode.NONE
    assert push(instances, id_, subscription, 1000) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(instances, id_, subscription, 1001) is ErrorCode.NONE


def test_the_last_push_may_come_early_and_nothing_comes_after_it(
    instances: TelemetryInstances,
) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_, subscription = instance.instance_id, instance.request.id
    assert push(instances, id_, subscription, 1) is ErrorCode.NONE
    assert push(instances, id_, subscription, 2, terminating=True) is ErrorCode.NONE
    assert push(instances, id_, subscription, 9999) is ErrorCode.INVALID_REQUEST


def test_the_checks_of_a_push_are_in_kafkas_order(instances: TelemetryInstances) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    id_, good = instance.instance_id, instance.request.id
    for reserved in (ZERO, (1).to_bytes(16, "big")):
        assert push(instances, reserved, good + 1, 1) is ErrorCode.INVALID_REQUEST
    assert push(instances, id_, good, 1) is ErrorCode.NONE
    early = push(instances, id_, good + 1, 2, content=b"x" * 101, codec=UNKNOWN_CODEC)
    assert early is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    unknown = push(instances, id_, good + 1, 1001, content=b"x" * 101, codec=UNKNOWN_CODEC)
    assert unknown is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    codec = push(instances, id_, good, 2002, content=b"x" * 101, codec=UNKNOWN_CODEC)
    assert codec is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert push(instances, id_, good, 3003, content=b"x" * 101) is ErrorCode.TELEMETRY_TOO_LARGE


def test_another_broker_accepts_the_pushes_of_a_client(instances: TelemetryInstances) -> None:
    instance = instances.get(ZERO, CLIENT, 0)
    other = TelemetryInstances(max_bytes=100)
    other.update(subscriptions(a={"metrics": "org.x", "interval.ms": str(INTERVAL_MS)}))
    assert push(other, instance.instance_id, instance.request.id, 0) is ErrorCode.NONE


def test_clients_unused_for_longest_and_expired_ones_are_forgotten(
    instances: TelemetryInstances, removed: list[bytes]
) -> None:
    ids = [instances.get(ZERO, CLIENT, now_ms).instance_id for now_ms in range(4)]
    assert removed == ids[:1]
    instances.remove_expired(MIN_EXPIRY_MS)
    assert removed == ids[:1]
    instances.remove_expired(MIN_EXPIRY_MS + 2)
    assert removed == ids[:3]
    instances.remove(ids[3])
    assert removed == ids
    assert len(instances) == 0
