"""A program as an administrator writes it for confluent_kafka; it is run as one of ours too."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)


def administer(bootstrap: str, topic: str, produce: Callable[[], None]) -> dict[str, Any]:
    """Everything that came back, by what was done."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    seen: dict[str, Any] = {}
    resource = ConfigResource("topic", topic)
    seen["created"] = each(
        admin.create_topics(
            [
                NewTopic(topic, num_partitions=2, replication_factor=1),
                NewTopic("no name", 1, 1),
                NewTopic(f"{topic}-far", 1, 9),
            ]
        )
    )
    seen["created again"] = each(admin.create_topics([NewTopic(topic, 2, 1)]))
    seen["added"] = each(admin.create_partitions([NewPartitions(topic, 3)]))
    seen["listed"] = until(
        lambda: admin.list_topics(topic, timeout=30),
        lambda cluster: len(cluster.topics[topic].partitions) == 3,
    )
    seen["described"] = each(admin.describe_topics(TopicCollection([topic])))
    seen["cluster"] = one(admin.describe_cluster())
    change = ConfigEntry("retention.ms", "5000", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(change)
    seen["altered"] = each(admin.incremental_alter_configs([resource]))
    nobody = ConfigResource(ResourceType.TOPIC, "nobody")
    seen["settings"] = until(
        lambda: each(admin.describe_configs([resource, nobody])),
        lambda settings: settings[str(resource)]["retention.ms"].value == "5000",
    )
    seen["broker"] = each(admin.describe_configs([ConfigResource("broker", "1")]))

    produce()
    asked = {
        TopicPartition(topic, 0): OffsetSpec.latest(),
        TopicPartition(topic, 1): OffsetSpec.earliest(),
        TopicPartition(topic, 2): OffsetSpec.for_timestamp(1),
        TopicPartition(topic, 9): OffsetSpec.latest(),
        TopicPartition("nobody", 0): OffsetSpec.latest(),
    }
    seen["offsets"] = each(admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED))
    seen["deleted records"] = each(
        admin.delete_records([TopicPartition(topic, 0, 2), TopicPartition(topic, 1, 50)])
    )
    elected = one(admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]))
    seen["elected"] = {f"{key.topic}-{key.partition}": error for key, error in elected.items()}

    group = f"{topic}-readers"
    moved = [TopicPartition(topic, 1, 7, "note"), TopicPartition(topic, 0, 3)]
    seen["moved"] = each(
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, moved)])
    )
    some = [TopicPartition(topic, 0), TopicPartition(topic, 2)]
    for request in ConsumerGroupTopicPartitions(group), ConsumerGroupTopicPartitions(group, some):
        seen[f"committed {request.topic_partitions}"] = each(
            admin.list_consumer_group_offsets([request])
        )
    listed = one(admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}))
    seen["groups"] = [each for each in listed.valid if each.group_id == group]
    seen["old groups"] = admin.list_groups(group, timeout=30)
    seen["groups described"] = each(admin.describe_consumer_groups([group, "nobody"]))
    seen["groups deleted"] = each(admin.delete_consumer_groups([group, "nobody"]))
    seen["deleted"] = each(admin.delete_topics([topic, "nobody"]))
    return seen


def until(look: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
    """What is seen once brokers have heard of what the controller decided."""
    deadline_s = monotonic() + 20
    while not fits(seen := look()):
        assert monotonic() < deadline_s, f"{seen} does not change"
    return seen


def each(futures: dict[Any, Any]) -> dict[str, Any]:
    return {str(key): one(future) for key, future in futures.items()}


def one(future: Any) -> Any:
    try:
        return future.result(30)
    except KafkaException as failure:
        return f"failed with {failure.args[0].name()}"
