"""Settings are checked against each other, and defaults adjust to explicit values."""

from typing import Any

import pytest
from tests.log_records import barnabas_log_lines

from barnabas.client.errors import KafkaException
from barnabas.client.settings import admin_settings, consumer_settings, producer_settings


@pytest.mark.parametrize("explicit", [{"enable.idempotence": True}, {"transactional.id": "t"}])
@pytest.mark.parametrize(
    ("obstacle", "named"),
    [
        ({"acks": 1}, "acks"),
        ({"acks": 0}, "acks"),
        ({"max.in.flight": 6}, "max.in.flight"),
        ({"retries": 0}, "retries"),
    ],
)
def test_explicit_idempotence_rejects_settings_that_exclude_it(
    explicit: dict[str, Any], obstacle: dict[str, Any], named: str
) -> None:
    with pytest.raises(KafkaException, match=named):
        producer_settings({**explicit, **obstacle})


@pytest.mark.parametrize("conf", [{"acks": 1}, {"acks": 0}, {"max.in.flight": 6}, {"retries": 0}])
def test_default_idempotence_is_disabled_by_settings_that_exclude_it(conf: dict[str, Any]) -> None:
    assert not producer_settings(conf).enable_idempotence


def test_transactions_are_idempotent() -> None:
    assert producer_settings({"transactional.id": "t"}).enable_idempotence
    with pytest.raises(KafkaException, match=r"enable\.idempotence"):
        producer_settings({"transactional.id": "t", "enable.idempotence": False})


def test_the_delivery_timeout_is_at_most_the_transaction_timeout() -> None:
    conf = {"transactional.id": "t", "transaction.timeout.ms": 9000}
    assert producer_settings(conf).delivery_timeout_ms == 9000
    assert (
        producer_settings({**conf, "delivery.timeout.ms": 120_000}).delivery_timeout_ms == 120_000
    )


def test_the_linger_is_less_than_the_delivery_timeout() -> None:
    with pytest.raises(KafkaException, match=r"delivery.timeout.ms.*linger.ms"):
        producer_settings({"delivery.timeout.ms": 4, "linger.ms": 5})
    assert producer_settings({"delivery.timeout.ms": 4}).linger_ms < 4


def test_the_delivery_timeout_may_be_less_than_the_request_timeout() -> None:
    settings = producer_settings({"delivery.timeout.ms": 5000, "request.timeout.ms": 30_000})
    assert (settings.delivery_timeout_ms, settings.ack_timeout_ms) == (5000, 30_000)


@pytest.mark.parametrize("kind", ["retry", "reconnect"])
def test_a_backoff_grows_from_its_first_value_to_its_last(kind: str) -> None:
    def backoffs(**conf: int) -> tuple[int, int]:
        settings = producer_settings({f"{kind}.{k.replace('_', '.')}": v for k, v in conf.items()})
        first = getattr(settings, f"{kind}_backoff_ms")
        return first, getattr(settings, f"{kind}_backoff_max_ms")

    assert backoffs(backoff_ms=20_000) == (20_000, 20_000)
    assert backoffs(backoff_max_ms=20) == (20, 20)
    assert backoffs(backoff_ms=500, backoff_max_ms=20) == (20, 20)


def test_the_session_timeout_is_more_than_the_heartbeat_interval() -> None:
    with pytest.raises(KafkaException, match=r"heartbeat.interval.ms.*session.timeout.ms"):
        consumer_settings({"session.timeout.ms": 1000, "heartbeat.interval.ms": 3000})
    assert consumer_settings({"session.timeout.ms": 1000}).heartbeat_interval_ms < 1000
    late = consumer_settings({"heartbeat.interval.ms": 50_000})
    assert late.session_timeout_ms > late.heartbeat_interval_ms == 50_000


def test_the_session_timeout_is_at_most_the_poll_interval() -> None:
    with pytest.raises(KafkaException, match=r"max.poll.interval.ms.*session.timeout.ms"):
        consumer_settings({"session.timeout.ms": 400_000})
    settings = consumer_settings({"max.poll.interval.ms": 10_000})
    assert settings.session_timeout_ms == 10_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session.timeout.ms", 10_000),
        ("heartbeat.interval.ms", 1000),
        ("partition.assignment.strategy", "range"),
    ],
)
def test_settings_of_the_broker_are_rejected_in_the_consumer_protocol(
    name: str, value: Any
) -> None:
    with pytest.raises(KafkaException, match=name):
        consumer_settings({"group.protocol": "consumer", name: value})


def test_the_response_limit_is_larger_than_a_fetch() -> None:
    assert consumer_settings({"fetch.max.bytes": 200_000_000}).max_response_bytes == 200_000_512
    assert consumer_settings({"receive.message.max.bytes": 2512}).fetch_max_bytes == 2000
    with pytest.raises(KafkaException, match=r"receive.message.max.bytes"):
        consumer_settings({"fetch.max.bytes": 200_000, "receive.message.max.bytes": 100_000})


def test_settings_of_another_kind_of_client_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    producer_settings({"group.id": "g", "acks": "all", "client.id": "mine"})
    consumer_settings({"group.id": "g", "linger.ms": 5, "request.timeout.ms": 1})
    admin_settings({"group.id": "g", "linger.ms": 5})  # one file may serve several tools
    assert barnabas_log_lines(caplog) == [
        "Settings of another kind of client, without effect: group.id",
        "Settings of another kind of client, without effect: linger.ms",
    ]


@pytest.mark.parametrize("address", ["http://localhost:9092", "kafka://localhost"])
def test_an_address_of_another_protocol_is_rejected(address: str) -> None:
    with pytest.raises(KafkaException, match="is the address of another protocol"):
        producer_settings({"bootstrap.servers": address})
    assert producer_settings({"bootstrap.servers": "plaintext://localhost"}).bootstrap_servers
