"""Settings by the names of Java or librdkafka become one set of typed fields."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.librdkafka import takes
from tests.log_records import barnabas_log_lines

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import (
    ConsumerSettings,
    ProducerSettings,
    admin_settings,
    consumer_settings,
    producer_settings,
)
from barnabas.client.settings.parser import JAVA
from barnabas.config import Endpoint
from barnabas.config.client import librdkafka
from barnabas.config.setting import REQUIRED, SettingType, to_text

# Refused for what it loads or for what else it needs, not for its name.
NEEDS_MORE = {"plugin.library.paths", "topic.blacklist"}


def error_of(of: Any, conf: dict[Any, Any]) -> str:
    with pytest.raises(KafkaException) as raised:
        of(conf)
    error = raised.value.args[0]
    assert error.code() == KafkaError._INVALID_ARG
    return str(error.str())


# Both worlds


def probes(name: str) -> Iterator[str]:
    setting = librdkafka.SETTINGS[name]
    match setting.type:
        case SettingType.BOOLEAN:
            yield from ("true", "false", "True", "FALSE", "t", "1", "f", "0", "yes", "2")
        case SettingType.INT | SettingType.DOUBLE:
            low, high = setting.check._low, setting.check._high  # type: ignore[union-attr]
            yield from map(str, (low, high, low - 1, high + 1))
            yield from ("", "many")
        case _:
            yield to_text(setting.default) or "x"
            if setting.check is not None:
                yield "something else"


@pytest.mark.parametrize("name", sorted(librdkafka.SETTINGS.keys() - NEEDS_MORE))
def test_settings_of_confluent_kafka_are_accepted(name: str) -> None:
    for text in probes(name):
        if takes(name, text):
            read_alone(name, text)
        elif name not in JAVA and librdkafka.SETTINGS[name].type is not SettingType.STRING:
            with pytest.raises(KafkaException):
                read_alone(name, text)


@pytest.mark.parametrize("name", sorted(JAVA))
def test_settings_of_java_are_accepted(name: str) -> None:
    setting = JAVA[name]
    if setting.default not in (None, (), "", REQUIRED):
        read_alone(name, to_text(setting.default))


def read_alone(name: str, text: str | None) -> Any:
    from barnabas.client.settings.parser import parse_value

    return parse_value(name, text)


def test_defaults_are_librdkafkas_except_for_safe_producers() -> None:
    settings = producer_settings({})
    assert settings == ProducerSettings()
    assert (settings.linger_ms, settings.batch_size, settings.acks) == (5, 1_000_000, -1)
    assert settings.enable_idempotence
    assert settings.partitioner == "murmur2_random"
    assert settings.allow_auto_create_topics
    assert consumer_settings({}) == ConsumerSettings()
    assert not consumer_settings({}).allow_auto_create_topics
    assert consumer_settings({}).isolation_level == "read_committed"


@pytest.mark.parametrize(
    ("field", "value", "confs"),
    [
        ("acks", -1, [{"acks": "all"}, {"acks": -1}, {"request.required.acks": "-1"}]),
        ("linger_ms", 20.0, [{"linger.ms": 20}, {"queue.buffering.max.ms": "20"}]),
        ("linger_ms", 0.5, [{"linger.ms": 0.5}, {"linger.ms": "0.5"}]),
        ("buffer_memory", 2**25, [{"buffer.memory": 2**25}, {"queue.buffering.max.kbytes": 2**15}]),
        ("max_request_size", 5000, [{"max.request.size": 5000}, {"message.max.bytes": "5000"}]),
        ("max_in_flight", 3, [{"max.in.flight": 3}, {"max.in.flight.requests.per.connection": 3}]),
        ("compression", "lz4", [{"compression.type": "LZ4"}, {"compression.codec": "lz4"}]),
        (
            "delivery_timeout_ms",
            7000,
            [{"delivery.timeout.ms": 7000}, {"message.timeout.ms": 7000.0}],
        ),
        ("delivery_timeout_ms", 2**31 - 1, [{"message.timeout.ms": 0}]),
        ("buffer_messages", 2**31 - 1, [{"queue.buffering.max.messages": 0}]),
        ("retries", 3, [{"retries": 3}, {"message.send.max.retries": 3}]),
        (
            "partitioner",
            "roundrobin",
            [{"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}],
        ),
        ("partitioner", "fnv1a", [{"partitioner": "fnv1a"}]),
        ("send_buffer_bytes", 0, [{"send.buffer.bytes": -1}, {"socket.send.buffer.bytes": 0}]),
        ("connections_max_idle_ms", 0, [{"connections.max.idle.ms": -1}]),
        ("transactional_id", None, [{"transactional.id": ""}]),
        ("metadata_max_age_ms", 2**31 - 1, [{"topic.metadata.refresh.interval.ms": -1}]),
        ("metadata_max_age_ms", 9000, [{"metadata.max.age.ms": 9000}]),
        (
            "metadata_max_age_ms",
            9000,
            [{"topic.metadata.refresh.interval.ms": 9000, "metadata.max.age.ms": 27000}],
        ),
        ("request_timeout_ms", 9000, [{"request.timeout.ms": 9000}, {"socket.timeout.ms": 9000}]),
        ("request_timeout_ms", 60, [{"socket.timeout.ms": 60, "request.timeout.ms": 50}]),
        ("ack_timeout_ms", 50, [{"socket.timeout.ms": 60, "request.timeout.ms": 50}]),
        ("acks", 1, [{"default.topic.config": {"acks": 1}}]),
        (
            "bootstrap_servers",
            (Endpoint("a", 1), Endpoint("b", 9092), Endpoint("::1", 3)),
            [
                {"bootstrap.servers": "a:1,b,[::1]:3"},
                {"metadata.broker.list": "a:1, ,b:9092,PLAINTEXT://[::1]:3"},
                {"bootstrap.servers": ["a:1", "b", "[::1]:3"]},
            ],
        ),
    ],
)
def test_a_producers_setting_has_one_meaning_by_all_its_names(
    field: str, value: Any, confs: list[dict[str, Any]]
) -> None:
    assert [getattr(producer_settings(conf), field) for conf in confs] == [value] * len(confs)


@pytest.mark.parametrize(
    ("field", "value", "confs"),
    [
        (
            "auto_offset_reset",
            "earliest",
            [{"auto.offset.reset": word} for word in ("earliest", "smallest", "BEGINNING")],
        ),
        (
            "auto_offset_reset",
            "latest",
            [{"auto.offset.reset": word} for word in ("latest", "largest", "end")],
        ),
        ("auto_offset_reset", "none", [{"auto.offset.reset": word} for word in ("none", "error")]),
        (
            "auto_offset_reset",
            "by_duration:PT1H",
            [{"auto.offset.reset": "by_duration:PT1H"}],
        ),
        (
            "assignors",
            ("sticky", "cooperative-sticky"),
            [
                {"partition.assignment.strategy": "sticky,cooperative-sticky"},
                {"partition.assignment.strategy": ["sticky", "cooperative-sticky"]},
                {
                    "partition.assignment.strategy": "org.apache.kafka.clients.consumer."
                    "StickyAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
                },
            ],
        ),
        ("fetch_max_wait_ms", 7, [{"fetch.max.wait.ms": 7}, {"fetch.wait.max.ms": 7}]),
        (
            "max_partition_fetch_bytes",
            777,
            [{"max.partition.fetch.bytes": 777}, {"fetch.message.max.bytes": 777}],
        ),
        ("prefetch_bytes", 2048, [{"queued.max.messages.kbytes": 2}]),
        ("enable_auto_commit", False, [{"enable.auto.commit": v} for v in (False, "false", 0)]),
        ("group_protocol", "consumer", [{"group.protocol": "CONSUMER"}]),
        ("isolation_level", "read_uncommitted", [{"isolation.level": "READ_UNCOMMITTED"}]),
        ("group_instance_id", None, [{"group.instance.id": ""}]),
    ],
)
def test_a_consumers_setting_has_one_meaning_by_all_its_names(
    field: str, value: Any, confs: list[dict[str, Any]]
) -> None:
    assert [getattr(consumer_settings(conf), field) for conf in confs] == [value] * len(confs)


def test_an_admin_client_reaches_brokers_or_controllers() -> None:
    settings = admin_settings({"bootstrap.controllers": "c:9093", "client.id": "me"})
    assert settings.bootstrap_controllers == (Endpoint("c", 9093),)
    assert settings.client_id == "me"


def test_the_level_is_that_of_the_codec_in_use() -> None:
    levels = {"compression.gzip.level": 4, "compression.zstd.level": 7}
    assert producer_settings({**levels, "compression.type": "zstd"}).compression_level == 7
    assert producer_settings({**levels, "compression.type": "snappy"}).compression_level is None
    assert producer_settings({"compression.level": -1}).compression_level is None


def test_a_java_properties_file_is_accepted() -> None:
    settings = producer_settings(
        {
            "bootstrap.servers": "localhost:9092",
            "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
            "acks": "1",
            "buffer.memory": "67108864",
            "interceptor.classes": "io.confluent.monitoring.MonitoringProducerInterceptor",
            "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
        }
    )
    assert (settings.acks, settings.buffer_memory) == (1, 67_108_864)
    assert settings.interceptors == ()


# Callbacks and objects


def test_callbacks_are_stored_unchanged() -> None:
    def called(*_: Any) -> None: ...

    names = ("error_cb", "stats_cb", "throttle_cb")
    producer = producer_settings(dict.fromkeys((*names, "on_delivery", "oauth_cb"), called))
    consumer = consumer_settings(dict.fromkeys((*names, "on_commit"), called))
    assert {producer.error_cb, producer.stats_cb, producer.throttle_cb} == {called}
    assert producer.on_delivery is consumer.on_commit is called
    assert producer.security.oauth_cb is called
    logger = logging.getLogger("mine")
    assert consumer_settings({"logger": logger}).logger is logger


@pytest.mark.parametrize("name", ["error_cb", "stats_cb", "throttle_cb", "oauth_cb"])
@pytest.mark.parametrize("value", [None, 5, "f"])
def test_a_callback_that_cannot_be_called_is_a_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=name):
        producer_settings({name: value})


def test_callbacks_belong_to_their_client() -> None:
    assert "callable" in error_of(producer_settings, {"on_delivery": 5})
    assert 'property: "on_commit"' in error_of(producer_settings, {"on_commit": print})
    assert 'property: "on_delivery"' in error_of(consumer_settings, {"on_delivery": print})
    assert "on_delivery" in error_of(producer_settings, {"dr_cb": print})


def test_partitioners_and_interceptors_may_be_objects_of_python() -> None:
    def partitioner(*_: Any) -> int:
        return 0

    class Interceptor: ...

    one, other = Interceptor(), Interceptor()
    assert producer_settings({"partitioner": partitioner}).partitioner is partitioner
    assert producer_settings({"interceptors": [one, other]}).interceptors == (one, other)
    assert consumer_settings({"interceptor.classes": one}).interceptors == (one,)


def test_serializers_are_for_the_clients_that_call_them() -> None:
    assert "SerializingProducer" in error_of(producer_settings, {"key.serializer": str.encode})
    assert "barnabas.serialization" in error_of(
        consumer_settings, {"value.deserializer": "org.apache.kafka.x.LongDeserializer"}
    )


# What is wrong


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("lingr.ms", "linger.ms"),
        ("bootstrap.server", "bootstrap.servers"),
        ("bootstrap_servers", "bootstrap.servers"),
        ("auto.offset.rest", "auto.offset.reset"),
        ("enable.autocommit", "enable.auto.commit"),
        ("compresion.type", "compression.type"),
        ("groupid", "group.id"),
        ("on_deliver", "on_delivery"),
        ("eror_cb", "error_cb"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(name: str, nearest: str) -> None:
    problem = f'No such configuration property: "{name}"; did you mean "{nearest}"?'
    assert error_of(producer_settings, {name: 1}) == problem


def test_a_name_that_is_near_nothing_has_no_hint() -> None:
    assert error_of(producer_settings, {"zebra": 1}) == 'No such configuration property: "zebra"'
    assert error_of(producer_settings, {5: 1}) == 'No such configuration property: "5"'


@pytest.mark.parametrize(
    ("conf", "parts"),
    [
        ({"socket.timeout.ms": 5}, ('"5"', '"socket.timeout.ms"', "[10,...,300000]")),
        ({"socket.timeout.ms": None}, ('"socket.timeout.ms"',)),
        ({"socket.timeout.ms": True}, ('"true"', "an integer")),
        ({"acks": 2000}, ('"2000"', "[all, -1, 0, 1]")),
        ({"compression.type": "brotli"}, ('"brotli"', "gzip, snappy, lz4, zstd")),
        ({"enable.idempotence": "maybe"}, ('"maybe"', "true or false")),
        ({"partitioner": "mine"}, ('"mine"', "murmur2_random")),
        ({"bootstrap.servers": "a:b"}, ('"a:b"', "host:port")),
        ({"debug": "all,nothing"}, ('"all,nothing"', "cgrp")),
        ({"max.block.ms": -1}, ('"-1"', '"max.block.ms"', "[0,...]")),
        ({"linger.ms": [1, 2]}, ('"1,2"', "a number")),
        ({"security.protocol": "TLS"}, ('"TLS"', "SASL_SSL")),
    ],
)
def test_a_wrong_value_says_name_value_and_what_is_allowed(
    conf: dict[str, Any], parts: tuple[str, ...]
) -> None:
    problem = error_of(producer_settings, conf)
    assert [part for part in parts if part not in problem] == []


@pytest.mark.parametrize(
    "conf",
    [
        {"linger.ms": 5, "queue.buffering.max.ms": 6},
        {"acks": "all", "request.required.acks": 1},
        {"bootstrap.servers": "a:1", "metadata.broker.list": "b:1"},
        {"buffer.memory": 1024, "queue.buffering.max.kbytes": 2},
        {"linger.ms": 5, "default.topic.config": {"queue.buffering.max.ms": 6}},
    ],
)
def test_two_names_that_contradict_each_other_are_an_error_that_names_both(
    conf: dict[str, Any],
) -> None:
    problem = error_of(producer_settings, conf)
    flat = {**conf, **conf.get("default.topic.config", {})}
    assert [name for name in flat if name not in (problem, "default.topic.config")] != []
    assert all(name in problem for name in flat if name != "default.topic.config")
    assert "two" not in problem


def test_two_names_that_agree_are_fine() -> None:
    assert producer_settings({"linger.ms": 5, "queue.buffering.max.ms": "5"}).linger_ms == 5
    agreed = {"buffer.memory": 2048, "queue.buffering.max.kbytes": 2}
    assert producer_settings(agreed).buffer_memory == 2048


def test_settings_of_other_clients_and_without_effect_are_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, logger="barnabas.client"):
        consumer_settings({"linger.ms": 5, "socket.nagle.disable": True, "fetch.min.bytes": 1})
    *_, line = barnabas_log_lines(caplog)
    assert "linger.ms (it is for another kind of client)" in line
    assert "socket.nagle.disable" in line
    assert "fetch.min.bytes" not in line


def test_the_topic_settings_must_be_a_dictionary() -> None:
    with pytest.raises(TypeError, match=r"default\.topic\.config"):
        producer_settings({"default.topic.config": 3})
