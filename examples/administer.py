"""The life of a topic: create, describe, alter, grow, empty, delete.

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
    print(settled(admin, topic, partitions=2, kept_ms=1000))
    keep_for(admin, topic, hours=6)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
    empty(admin, topic)
    print(settled(admin, topic, partitions=4, kept_ms=6 * 3_600_000))
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


def settled(admin: AdminClient, topic: str, partitions: int, kept_ms: int) -> str:
    """Describe it: brokers hear of a change a moment after the controller has made it."""
    deadline = time.monotonic() + 30
    while True:
        try:
            topic_description = admin.describe_topics(TopicCollection([topic]))[topic].result()
            resource = ConfigResource(ResourceType.TOPIC, topic)
            configs = admin.describe_configs([resource])[resource].result()
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            retention_ms = configs["retention.ms"].value
            if (len(topic_description.partitions), int(retention_ms)) == (partitions, kept_ms):
                leaders = [partition.leader.id for partition in topic_description.partitions]
                return f"{topic}: {partitions} partitions, leaders {leaders}, kept for {retention_ms} ms"
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} is not what it was made")
        time.sleep(0.05)


def keep_for(admin: AdminClient, topic: str, hours: int) -> None:
    entry = ConfigEntry(
        "retention.ms",
        str(hours * 3_600_000),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def empty(admin: AdminClient, topic: str) -> None:
    """Delete what the first partition has; -1 is up to its end."""
    deleted = admin.delete_records([TopicPartition(topic, 0, -1)])
    for partition, future in deleted.items():
        print(f"partition {partition.partition} begins at {future.result().low_watermark}")


if __name__ == "__main__":
    main(*sys.argv[1:])
