"""The life of a topic: create, describe, alter, grow, empty, delete.

python administer.py localhost:9092 parcels
"""

import sys

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
    describe(admin, topic)
    keep_for(admin, topic, hours=6)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
    empty(admin, topic)
    describe(admin, topic)
    admin.delete_topics([topic], operation_timeout=30)[topic].result()
    print("deleted" if topic not in admin.list_topics(timeout=10).topics else "still there")


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


def describe(admin: AdminClient, topic: str) -> None:
    found = admin.describe_topics(TopicCollection([topic]))[topic].result()
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result()
    print(
        f"{found.name}: {len(found.partitions)} partitions, "
        f"leaders {[partition.leader.id for partition in found.partitions]}, "
        f"kept for {configs['retention.ms'].value} ms"
    )


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
