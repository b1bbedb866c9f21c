"""The source and the sink with SASL_SSL and ACLs, in one Spark session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.conformance.secured_broker import PASSWORD, SCRAM, SecuredBroker, secured_broker

from barnabas.admin import AclOperation, ResourcePatternType, ResourceType

DEADLINE_S = 60.0
PREFIX = "barnabas-sink"
DENIED = "spark-denied: .*(TOPIC_AUTHORIZATION_FAILED|Not authorized for the topic)"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker whose user alice may do what docs/spark-exactly-once.md says that a sink needs."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        for resource_type, operations in (
            (ResourceType.TRANSACTIONAL_ID, ("WRITE", "DESCRIBE")),
            (ResourceType.GROUP, ("READ", "DELETE")),
        ):
            running.allow(
                PREFIX,
                "alice",
                *(AclOperation[name] for name in operations),
                resource_type=resource_type,
                pattern_type=ResourcePatternType.PREFIXED,
            )
        running.allow("__barnabas_sink", "alice", AclOperation.READ, AclOperation.CREATE)
        yield running


def options(
    secured: SecuredBroker, mechanism: str = "PLAIN", password: str = PASSWORD
) -> dict[str, str]:
    """Returns options with a JAAS text, and the trust store as a file or as a text."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    assert secured.connection.ca is not None
    trust = {"kafka.ssl.truststore.location": secured.connection.ca}
    if mechanism == "PLAIN":
        trust = {"kafka.ssl.truststore.certificates": Path(secured.connection.ca).read_text()}
    return {
        "kafka.bootstrap.servers": secured.connection.bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        f'username="alice" password="{password}";',
        **trust,
    }


def write(spark: SparkSession, secured: SecuredBroker, topic: str, count: int, **more: str) -> None:
    frame = spark.range(count).selectExpr("cast(id as string) as value")
    writer = frame.write.format("barnabas").options(**options(secured)).options(**more)
    writer.option("topic", topic).mode("append").save()


def read(spark: SparkSession, secured: SecuredBroker, topic: str, mechanism: str) -> list[int]:
    reader = spark.read.format("barnabas").options(**options(secured, mechanism))
    rows = reader.option("subscribe", topic).load().select("value").collect()
    return sorted(int(bytes(row.value)) for row in rows)


def test_batches_are_written_and_read(spark: SparkSession, secured: SecuredBroker) -> None:
    topic = secured.create_topic("spark-batch", "alice")
    write(spark, secured, topic, 5)
    write(spark, secured, topic, 5, deliveryGuarantee="at-least-once")
    for mechanism in ("PLAIN", *SCRAM):
        assert read(spark, secured, topic, mechanism) == sorted([*range(5)] * 2)


def test_a_stream_is_read_and_written(
    spark: SparkSession, secured: SecuredBroker, tmp_path: Path
) -> None:
    source = secured.create_topic("spark-from", "alice")
    target = secured.create_topic("spark-to", "alice")
    for count in (3, 4):
        write(spark, secured, source, count)
        stream = spark.readStream.format("barnabas").options(**options(secured, "SCRAM-SHA-512"))
        stream = stream.option("subscribe", source).option("startingOffsets", "earliest")
        writer = stream.load().select("value").writeStream.format("barnabas")
        writer = writer.options(**options(secured)).option("topic", target)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert writer.start().awaitTermination(DEADLINE_S)
    assert read(spark, secured, target, "PLAIN") == sorted([*range(3), *range(4)])


def test_a_wrong_password_is_an_error_that_does_not_show_it(
    spark: SparkSession, secured: SecuredBroker
) -> None:
    wrong = options(secured, password="guessed")
    frame = spark.range(1).selectExpr("cast(id as string) as value")
    writer = frame.write.format("barnabas").options(**wrong).option("topic", "allowed")
    reader = spark.read.format("barnabas").options(**wrong).option("subscribe", "allowed")
    for run in (writer.mode("append").save, lambda: reader.load().collect()):
        with pytest.raises(PySparkException, match="the user name or the password is wrong") as e:
            run()
        assert "guessed" not in str(e.value)


def test_a_topic_without_permission_is_an_error(
    spark: SparkSession, secured: SecuredBroker
) -> None:
    topic = secured.create_topic("spark-denied", "bob")
    with pytest.raises(PySparkException, match=DENIED):
        write(spark, secured, topic, 1)
    with pytest.raises(PySparkException, match=DENIED):
        read(spark, secured, topic, "PLAIN")
    assert secured.end_offset(topic) == 0
