"""A message has confluent_kafka's methods, compiled and as plain Python."""

import copy
from types import ModuleType

import pytest
from tests.uncompiled import load_uncompiled

from barnabas.client import _message
from barnabas.client.errors import KafkaError


@pytest.fixture(params=["compiled", "plain"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "plain":
        return load_uncompiled(_message)
    if not _message.COMPILED:
        pytest.skip("the message is not compiled here")
    return _message


def test_an_empty_message_has_only_defaults(module: ModuleType) -> None:
    message = module.Message()
    for absent in ("topic", "partition", "offset", "key", "value", "headers", "error", "latency"):
        assert getattr(message, absent)() is None
    assert message.leader_epoch() is None
    assert message.timestamp() == (0, 0)
    assert len(message) == 0


def test_a_message_returns_its_arguments(module: ModuleType) -> None:
    error = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
    message = module.Message(
        "orders", 3, 5, b"k", b"value", [("h", b"x")], error, (1, 7), 0.5, leader_epoch=2
    )
    assert (message.topic(), message.partition(), message.offset()) == ("orders", 3, 5)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"value", [("h", b"x")])
    assert (message.error(), message.timestamp(), message.latency()) == (error, (1, 7), 0.5)
    assert message.leader_epoch() == 2
    assert len(message) == 5


def test_offsets_and_partitions_that_are_none_are_none(module: ModuleType) -> None:
    message = module.Message("t", -1, -1001, leader_epoch=-1, latency=-1.0)
    assert message.partition() is None
    assert message.offset() is None
    assert message.leader_epoch() is None
    assert message.latency() is None


def test_deserialized_values_replace_the_bytes(module: ModuleType) -> None:
    message = module.Message("t", key=b"k", value=b"v")
    message.set_topic("u")
    message.set_key(1)
    message.set_value([1, 2, 3])
    message.set_headers([("a", None)])
    message.set_error(KafkaError(1))
    assert (message.topic(), message.deserialized_key(), message.deserialized_value()) == (
        "u",
        1,
        [1, 2, 3],
    )
    assert message.headers() == [("a", None)]
    assert message.error() == 1
    assert len(message) == 3


def test_messages_are_equal_by_their_fields(module: ModuleType) -> None:
    made = module.make("t", 0, 4, 1, 1, 99, b"k", b"v", None)
    assert made == module.Message("t", 0, 4, b"k", b"v", timestamp=(1, 99), leader_epoch=1)
    assert made != module.Message("t", 0, 5, b"k", b"v", timestamp=(1, 99), leader_epoch=1)
    assert made != "t"
    assert (made.error(), made.latency()) == (None, None)


def test_a_timestamp_is_a_pair(module: ModuleType) -> None:
    with pytest.raises(TypeError):
        module.Message("t", timestamp=5)


def test_a_message_can_be_copied() -> None:
    message = _message.Message("t", 1, 2, b"k", b"v", timestamp=(1, 5))
    assert copy.copy(message) == message
