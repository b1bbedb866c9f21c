"""What holds for every image, whatever records made it."""

from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.conftest import histories, image_of

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataLoader
from barnabas.metadata.partition_index import PartitionIndex
from barnabas.metadata.states import DirectoryId, PartitionRegistration
from barnabas.wire.messages import metadata_records as wire
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from barnabas.wire.schema import Message

ORDERS = b"o" * 16


@given(histories)
def test_a_snapshot_rebuilds_an_equal_image(history: list[Message]) -> None:
    image = image_of(*history)
    assert image_of(*image.records()) == image


@given(histories, histories)
def test_a_copy_is_equal_and_changes_independently(
    history: list[Message], later: list[Message]
) -> None:
    image = image_of(*history)
    twin = image.copy()
    assert twin == image
    for record in later:
        twin.apply(record, MetadataDelta())
    assert image == image_of(*history)
    for record in later:
        image.apply(record, MetadataDelta())
    assert image == twin == image_of(*history, *later)


@given(histories, histories)
def test_a_delta_has_everything_that_differs(history: list[Message], later: list[Message]) -> None:
    before = image_of(*history)
    after = before.copy()
    delta = MetadataDelta()
    for record in later:
        after.apply(record, delta)
    _require_complete(delta, before, after)


@given(histories, histories)
def test_the_delta_between_two_images_equals_that_of_the_records(
    history: list[Message], other: list[Message]
) -> None:
    before, after = image_of(*history), image_of(*other)
    delta = MetadataDelta.between(before, after)
    _require_complete(delta, before, after)
    assert bool(delta) == (before != after)
    assert not MetadataDelta.between(before, before.copy())


@given(histories, histories)
def test_an_updated_index_equals_a_new_one(history: list[Message], later: list[Message]) -> None:
    image = image_of(*history)
    index = image.topics.index
    for record in later:
        image.apply(record, MetadataDelta())
    anew = PartitionIndex(image.topics)
    for broker_id in range(-1, 4):
        assert set(index.led_by(broker_id)) == set(anew.led_by(broker_id))
        assert set(index.in_sync_by(broker_id)) == set(anew.in_sync_by(broker_id))
        assert set(index.eligible_by(broker_id)) == set(anew.eligible_by(broker_id))
        assert index.leads_anything(broker_id) == any(index.led_by(broker_id))
    assert (index.not_led_by_preferred, index.reassigning) == (
        anew.not_led_by_preferred,
        anew.reassigning,
    )


def _require_complete(delta: MetadataDelta, before: MetadataImage, after: MetadataImage) -> None:
    topics_before = {topic.topic_id: topic for topic in before.topics}
    topics_after = {topic.topic_id: topic for topic in after.topics}
    for topic_id, topic in topics_after.items():
        known = topics_before.get(topic_id)
        if known is None:
            assert delta.topics_created[topic_id] == topic
        for index, partition in topic.partitions.items():
            if known is None or known.partitions.get(index) != partition:
                assert delta.partitions_changed[topic_id, index] == partition
    for topic_id in topics_before.keys() - topics_after.keys():
        assert topic_id in delta.topics_deleted
    assert delta.topics_created.keys() <= topics_after.keys()
    assert all(after.partition(*at) == state for at, state in delta.partitions_changed.items())

    assert _differing(before.configs, after.configs) <= delta.configs_changed
    assert _differing(before.brokers, after.brokers) <= delta.brokers_changed
    assert _differing(before.controllers, after.controllers) <= delta.controllers_changed
    assert _differing(before.features, after.features) <= delta.features_changed
    assert _differing(before.quotas, after.quotas) <= delta.quotas_changed
    assert _differing(before.acls, after.acls) <= delta.acls_changed
    assert _differing(before.scram, after.scram) <= delta.scram_changed
    assert _differing(before.tokens, after.tokens) <= delta.tokens_changed
    assert delta.producer_ids_changed or before.next_producer_id == after.next_producer_id
    assert delta or before == after


@given(st.lists(st.sampled_from(["a.b", "a_b", "a-b", "ab"]), unique=True))
def test_names_that_differ_in_dots_and_underscores_collide(names: list[str]) -> None:
    image = image_of(
        *(wire.TopicRecord(name=name, topic_id=name.encode().ljust(16)) for name in names)
    )
    assert (image.topics.find_colliding("a.b") is not None) == bool({"a.b", "a_b"} & set(names))
    for name in names:
        image.apply(wire.RemoveTopicRecord(topic_id=name.encode().ljust(16)), MetadataDelta())
    assert image.topics.find_colliding("a.b") is None


def test_a_topic_that_is_created_and_deleted_in_one_delta_is_no_change() -> None:
    image, delta = MetadataImage(), MetadataDelta()
    for record in (
        wire.TopicRecord(name="orders", topic_id=ORDERS),
        wire.PartitionRecord(partition_id=0, topic_id=ORDERS, replicas=[1]),
        wire.RemoveTopicRecord(topic_id=ORDERS),
    ):
        image.apply(record, delta)
    assert not delta


def test_a_leader_in_a_change_record_begins_an_epoch() -> None:
    image = image_of(
        wire.TopicRecord(name="orders", topic_id=ORDERS),
        wire.PartitionRecord(
            partition_id=0,
            topic_id=ORDERS,
            replicas=[1, 2],
            isr=[1, 2],
            leader=1,
            leader_epoch=7,
            partition_epoch=9,
        ),
        wire.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[1]),
        wire.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=1),
    )
    assert image.partition(ORDERS, 0) == PartitionRegistration(
        replicas=(1, 2),
        isr=(1,),
        leader=1,
        leader_epoch=8,
        partition_epoch=11,
        directories=(DirectoryId.MIGRATING, DirectoryId.MIGRATING),
    )


def test_deleting_a_topic_deletes_its_configs() -> None:
    image = image_of(
        wire.TopicRecord(name="orders", topic_id=ORDERS),
        wire.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="b"),
    )
    delta = MetadataDelta()
    image.apply(wire.RemoveTopicRecord(topic_id=ORDERS), delta)
    assert image.config(2, "orders") == {}
    assert delta.configs_changed == {(2, "orders")}


def _differing(before: dict, after: dict) -> set:  # type: ignore[type-arg]
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
LEVEL = FeatureLevelRecord(name="group.version", feature_level=1)


def test_a_transaction_is_applied_when_it_ends() -> None:
    loader, delta = MetadataLoader(MetadataImage()), MetadataDelta()
    loader.load([BEGIN, LEVEL], 1, 1, delta)
    assert loader.in_transaction
    assert not delta
    assert loader.image.offset == -1  # a snapshot here would lose what is held back
    loader.load([LEVEL, END], 3, 1, delta)
    assert not loader.in_transaction
    assert loader.image.features == {"group.version": 1}
    assert loader.image.offset == 3


def test_an_aborted_transaction_is_not_applied() -> None:
    loader, delta = MetadataLoader(MetadataImage()), MetadataDelta()
    loader.load([BEGIN, LEVEL], 1, 1, delta)
    loader.load([ABORT], 2, 2, delta)
    assert loader.image == MetadataImage()
    assert (loader.image.offset, loader.image.epoch) == (2, 2)


def test_records_outside_transactions_are_applied_at_once() -> None:
    loader = MetadataLoader(MetadataImage())
    loader.load([LEVEL, BEGIN, LEVEL, END], 3, 1, MetadataDelta())
    assert loader.image.features == {"group.version": 1}
