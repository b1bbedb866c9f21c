"""Records of every kind, for laws over images; and what Kafka 4.3 itself wrote."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import metadata_records as wire
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records
from barnabas.wire.schema import Message

KAFKA_DIRECTORY = Path(__file__).parent / "kafka-4.3"
KAFKA_METADATA = KAFKA_DIRECTORY / "__cluster_metadata-0"


def frames_in(path: Path) -> list[bytes]:
    """The values of all records that are not control records."""
    content = path.read_bytes()
    return [
        record.value
        for position, header in iterate_batches(content)
        if not header.is_control
        for record in read_records(content, position)
        if record.value is not None
    ]


def image_of(*records: Message) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.apply(record, MetadataDelta())
    return image


# Few ids and names, so that records meet the same things again and again.
ids = st.sampled_from([bytes([number]) * 16 for number in range(1, 4)])
names = st.sampled_from(["orders", "with.dots", "with_dots"])
texts = st.text("ab", max_size=2)
broker_ids = st.integers(0, 3)
replicas = st.lists(broker_ids, unique=True, max_size=3)
maybe_replicas = st.none() | replicas
directories = st.lists(st.sampled_from([b"d" * 16, b"e" * 16]), max_size=3)


def _features(entry: type) -> st.SearchStrategy[list[object]]:
    return st.lists(
        st.builds(
            entry,
            name=st.sampled_from(["metadata.version", "group.version"]),
            min_supported_version=st.integers(0, 3),
            max_supported_version=st.integers(4, 9),
        ),
        max_size=2,
        unique_by=lambda feature: feature.name,
    )


def _endpoints(entry: type) -> st.SearchStrategy[list[object]]:
    return st.lists(
        st.builds(entry, name=names, host=texts, port=st.integers(0, 65535)), max_size=2
    )


records: st.SearchStrategy[Message] = st.one_of(
    st.builds(wire.TopicRecord, name=names, topic_id=ids),
    st.builds(wire.RemoveTopicRecord, topic_id=ids),
    st.builds(
        wire.PartitionRecord,
        partition_id=st.integers(0, 2),
        topic_id=ids,
        replicas=replicas,
        isr=replicas,
        removing_replicas=replicas,
        adding_replicas=replicas,
        leader=broker_ids,
        leader_recovery_state=st.integers(0, 1),
        leader_epoch=st.integers(0, 5),
        partition_epoch=st.integers(0, 5),
        directories=directories,
        eligible_leader_replicas=maybe_replicas,
        last_known_elr=maybe_replicas,
    ),
    st.builds(
        wire.PartitionChangeRecord,
        partition_id=st.integers(0, 2),
        topic_id=ids,
        isr=maybe_replicas,
        leader=st.integers(-2, 3),
        replicas=maybe_replicas,
        removing_replicas=maybe_replicas,
        adding_replicas=maybe_replicas,
        leader_recovery_state=st.integers(-1, 1),
        directories=st.none() | directories,
        eligible_leader_replicas=maybe_replicas,
        last_known_elr=maybe_replicas,
    ),
    st.builds(wire.ClearElrRecord, topic_name=st.just("") | names),
    st.builds(
        wire.ConfigRecord,
        resource_type=st.sampled_from([2, 4, 16, 32]),
        resource_name=st.just("") | names,
        name=texts,
        value=st.none() | texts,
    ),
    st.builds(
        wire.RegisterBrokerRecord,
        broker_id=broker_ids,
        incarnation_id=ids,
        broker_epoch=st.integers(0, 9),
        end_points=_endpoints(wire.BrokerEndpoint),
        features=_features(wire.BrokerFeature),
        rack=st.none() | texts,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=directories,
        cordoned_log_dirs=st.none() | directories,
    ),
    st.builds(wire.UnregisterBrokerRecord, broker_id=broker_ids),
    st.builds(wire.FenceBrokerRecord, id=broker_ids),
    st.builds(wire.UnfenceBrokerRecord, id=broker_ids),
    st.builds(
        wire.BrokerRegistrationChangeRecord,
        broker_id=broker_ids,
        fenced=st.integers(-1, 1),
        in_controlled_shutdown=st.integers(-1, 1),
        log_dirs=directories,
        cordoned_log_dirs=st.none() | directories,
    ),
    st.builds(
        wire.RegisterControllerRecord,
        controller_id=broker_ids,
        incarnation_id=ids,
        end_points=_endpoints(wire.ControllerEndpoint),
        features=_features(wire.ControllerFeature),
    ),
    st.builds(
        wire.FeatureLevelRecord,
        name=st.sampled_from(["metadata.version", "group.version"]),
        feature_level=st.integers(0, 30),
    ),
    st.builds(wire.ProducerIdsRecord, broker_id=broker_ids, next_producer_id=st.integers(0, 5000)),
    st.builds(
        wire.ClientQuotaRecord,
        entity=st.lists(
            st.builds(
                wire.EntityData,
                entity_type=st.sampled_from(["user", "client-id"]),
                entity_name=st.none() | texts,
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda part: part.entity_type,
        ),
        key=texts,
        value=st.floats(0, 10),
        remove=st.booleans(),
    ),
    st.builds(
        wire.AccessControlEntryRecord,
        id=ids,
        resource_type=st.integers(1, 5),
        resource_name=names,
        principal=texts,
        host=texts,
    ),
    st.builds(wire.RemoveAccessControlEntryRecord, id=ids),
    st.builds(
        wire.UserScramCredentialRecord,
        name=names,
        mechanism=st.integers(1, 2),
        salt=st.binary(max_size=3),
        iterations=st.integers(4096, 8192),
    ),
    st.builds(wire.RemoveUserScramCredentialRecord, name=names, mechanism=st.integers(1, 2)),
    st.builds(
        wire.DelegationTokenRecord,
        owner=texts,
        renewers=st.lists(texts, max_size=2),
        token_id=texts,
        issue_timestamp=st.integers(0, 9),
    ),
    st.builds(wire.RemoveDelegationTokenRecord, token_id=texts),
    st.builds(wire.NoOpRecord),
)

histories = st.lists(records, max_size=40)


@pytest.fixture
def kafka_log() -> list[bytes]:
    return frames_in(KAFKA_METADATA / f"{0:020}.log")


@pytest.fixture
def kafka_snapshot() -> list[bytes]:
    return frames_in(KAFKA_METADATA / f"{64:020}-{2:010}.checkpoint")
