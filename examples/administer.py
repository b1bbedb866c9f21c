"""The life of a topic: create, describe, alter, grow, empty, delete.

The topic must not exist.

    python administer.py localhost:9092 parcels
"""

import sys
import time

from barnabas import KafkaError, KafkaException, TopicCollection, TopicPartition
from barnabas.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)


def main(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    create(admin, topic)
    create(admin, topic)
    print(wait_for_config(admin, topic, partitions=2, expected_retention_ms=1000))
    set_retention(admin, topic, hours=6)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
    empty(admin, topic)
    print(wait_for_config(admin, topic, partitions=4, expected_retention_ms=6 * 3_600_000))
    admin.delete_topics([topic], operation_timeout=30)[topic].result()
    while topic in admin.list_topics(timeout=10).topics:
        time.sleep(0.05)
    print("deleted")


def create(admin: AdminClient, topic: str) -> None:
    new = NewTopic(topic, num_partitions=2, replication_factor=1, config={"retention.ms": "1000"})
    for name, future in admin.create_topics([new]).items():
        try:
            future.result()
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            print(f"{name} exists")
        else:
            print(f"{name} created")


def wait_for_config(
    admin: AdminClient, topic: str, partitions: int, expected_retention_ms: int
) -> str:
    """Waits until brokers know the change: the controller applies it first."""
    deadline = time.monotonic() + 30
    while True:
        try:
            description = admin.describe_topics(TopicCollection([topic]))[topic].result()
            resource = ConfigResource(ResourceType.TOPIC, topic)
            configs = admin.describe_configs([resource])[resource].result()
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            retention_ms = configs["retention.ms"].value
            if (len(description.partitions), int(retention_ms)) == (
                partitions,
                expected_retention_ms,
            ):
                leaders = [partition.leader.id for partition in description.partitions]
                summary = f"{topic}: {partitions} partitions, leaders {leaders}"
                return f"{summary}, kept for {retention_ms} ms"
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} did not change in time")
        time.sleep(0.05)


def set_retention(admin: AdminClient, topic: str, hours: int) -> None:
    entry = ConfigEntry(
        "retention.ms",
        str(hours * 3_600_000),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def empty(admin: AdminClient, topic: str) -> None:
    """Delete the records of the first partition; -1 means up to its end."""
    deleted = admin.delete_records([TopicPartition(topic, 0, -1)])
    for partition, future in deleted.items():
        print(f"partition {partition.partition} begins at {future.result().low_watermark}")


if __name__ == "__main__":
    main(*sys.argv[1:])
