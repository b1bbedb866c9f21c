"""The metadata log and the snapshot that one run of Kafka 4.3 left behind."""

from tests.metadata.conftest import image_of

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import MetadataImage, MetadataLoader
from barnabas.metadata.states import NO_LEADER
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord


def test_log_and_snapshot_of_kafka_build_the_same_image(
    kafka_log: list[bytes], kafka_snapshot: list[bytes]
) -> None:
    records = [decode_record(frame) for frame in kafka_log]
    last = records.pop()
    assert isinstance(last, BrokerRegistrationChangeRecord)  # the one after the snapshot
    loader = MetadataLoader(MetadataImage())
    loader.load(records, last_offset=63, epoch=2, delta=MetadataDelta())
    assert loader.image == image_of(*(decode_record(frame) for frame in kafka_snapshot))


def test_the_image_has_what_kafka_wrote(kafka_snapshot: list[bytes]) -> None:
    image = image_of(*(decode_record(frame) for frame in kafka_snapshot))
    assert image.features == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }
    assert {topic.name: len(topic.partitions) for topic in image.topics} == {
        "orders": 5,
        "with.dots": 1,
    }
    assert image.config(2, "orders") == {"cleanup.policy": "compact", "min.insync.replicas": "1"}
    assert image.config(4, "") == {"log.retention.ms": "12345", "min.insync.replicas": "1"}
    assert image.config(4, "1") == {"log.cleaner.threads": "2"}
    assert image.config(16, "subscription") == {"interval.ms": "10000"}
    assert image.config(32, "group") == {"consumer.session.timeout.ms": "50000"}
    assert image.next_producer_id == 1000
    assert set(image.scram) == {("alice", 1)}
    assert image.brokers[1].endpoints[0].name == "PLAINTEXT"
    assert image.controllers[1].endpoints[0].name == "CONTROLLER"
    # The broker was in controlled shutdown: it leads nothing, and could lead again.
    orders = image.topics.by_name("orders")
    assert orders is not None
    assert {(p.leader, p.isr, p.elr) for p in orders.partitions.values()} == {(NO_LEADER, (), (1,))}
