"""What is asked of the sink wrongly is said before anything is written."""

import pytest
from pyspark.sql.types import StructType
from tests.spark.sink.topics import Topic

from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink import batch_writer, stream_writer
from barnabas.spark.sink.options import Guarantee, read_options
from barnabas.spark.sink.row_encoder import resolve_layout
from barnabas.testing import Broker

ADDRESS = {"kafka.bootstrap.servers": "localhost:9092"}
VALUE = StructType().add("value", "binary")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "kafka.bootstrap.servers must be the brokers' addresses"),
        (ADDRESS | {"topics": "a"}, "Did you mean 'topic'"),
        (ADDRESS | {"subscribe": "a"}, "'subscribe' is not an option of the .* mean 'topic'"),
        (ADDRESS | {"deliveryGarantee": "x"}, "Did you mean 'deliveryGuarantee'"),
        (ADDRESS | {"deliveryGuarantee": "twice"}, "exactly-once or at-least-once, not 'twice'"),
        (ADDRESS | {"txnAppId": "a"}, "txnAppId and txnVersion belong together"),
        (ADDRESS | {"txnAppId": "a", "txnVersion": "-1"}, "txnVersion must be a whole number"),
        (ADDRESS | {"valueSubject": "s"}, "need a valueFormat"),
        (ADDRESS | {"kafka.transactional.id": "x"}, "set transactionalIdPrefix instead"),
        (ADDRESS | {"kafka.acks": "1"}, "acks.* or set deliveryGuarantee to at-least-once"),
        (ADDRESS | {"kafka.enable.idempotence": "false"}, "enable.idempotence.* at-least-once"),
        (ADDRESS | {"kafka.linger.ms": "soon"}, "linger.ms"),
        (ADDRESS | {"kafka.lingr.ms": "5"}, "lingr.ms"),
    ],
)
def test_an_invalid_option_is_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read_options(options)


def test_the_sink_has_the_format_options_of_the_source() -> None:
    typed = {"valueFormat": "Protobuf", "valueMessage": "shop.Order"}
    asked = read_options(ADDRESS | typed | {"schema.registry.url": "http://localhost:8081"}).value
    assert asked is not None
    assert (asked.name, asked.message, asked.framing) == ("protobuf", "shop.Order", "registry")
    assert asked.registry == {"url": "http://localhost:8081"}


def test_option_names_are_case_insensitive() -> None:
    options = read_options(ADDRESS | {"TOPIC": "t", "DeliveryGuarantee": "At-Least-Once"})
    assert (options.topic, options.guarantee) == ("t", Guarantee.AT_LEAST_ONCE)
    assert options.conf["bootstrap.servers"] == "localhost:9092"


@pytest.mark.parametrize(
    "settings",
    [
        {"kafka.acks": "all", "kafka.enable.idempotence": "true"},
        {"kafka.acks": "1", "deliveryGuarantee": "at-least-once"},
        {"kafka.enable.idempotence": "false", "deliveryGuarantee": "at-least-once"},
    ],
)
def test_exactly_once_rejects_fewer_acknowledgements(settings: dict[str, str]) -> None:
    read_options(ADDRESS | settings)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"value": "binary"}, {}, "set the option topic, or add a column topic"),
        ({"id": "long"}, {"topic": "t"}, "no column value; there are id"),
        ({"value": "long"}, {"topic": "t"}, "value is bigint and must be binary or string; set v"),
        ({"value": "binary", "partition": "long"}, {"topic": "t"}, "partition is bigint"),
        ({"value": "binary", "headers": "string"}, {"topic": "t"}, "headers is string"),
        ({"value": "binary", "topic": "long"}, {}, "topic is bigint and must be string"),
        (
            {"topic": "string"},
            {"valueFormat": "json"},
            "no column value, and no other column to encode",
        ),
        ({"value": "long"}, {"topic": "t", "valueFormat": "xml"}, "valueFormat must be one of"),
    ],
)
def test_an_invalid_column_is_named(
    columns: dict[str, str], options: dict[str, str], said: str
) -> None:
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    with pytest.raises(OptionError, match=said):
        resolve_layout(schema, read_options(ADDRESS | options))


def test_other_columns_are_ignored_as_in_sparks_connector() -> None:
    schema = VALUE.add("offset", "long").add("note", "string")
    assert resolve_layout(schema, read_options(ADDRESS | {"topic": "t"})).plain_columns == (
        "value",
    )


def test_overwriting_a_topic_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"mode\('append'\)"):
        batch_writer(ADDRESS | {"topic": "t"}, VALUE, True)


def test_a_stream_rejects_txn_app_id_and_version(topic: Topic) -> None:
    with pytest.raises(OptionError, match="txnAppId"):
        stream_writer(topic.options | {"txnAppId": "a", "txnVersion": "1"}, VALUE)


def test_a_missing_topic_is_an_error_without_auto_creation() -> None:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "nowhere"}
        with pytest.raises(OptionError, match="no topic 'nowhere': create it"):
            batch_writer(options, VALUE, False)
