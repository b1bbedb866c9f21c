"""Brokers and controllers, their features, quorum and directories."""

from pathlib import Path

import pytest

from barnabas import TopicPartition, Uuid
from barnabas.admin import (
    AclOperation,
    AdminClient,
    ConfigResource,
    FeatureUpdate,
    KafkaError,
    KafkaException,
    TopicPartitionReplica,
    UpgradeType,
)
from barnabas.testing import Broker
from barnabas.wire.apis import ApiKey


def test_the_cluster_is_described_with_its_nodes(admin: AdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(30)
    (node,) = cluster.nodes
    assert (node.id, f"{node.host}:{node.port}") == (1, broker.bootstrap_servers)
    assert (cluster.controller, cluster.cluster_id) == (node, admin.cluster_id(timeout=30))
    assert AclOperation.CREATE in (cluster.authorized_operations or ())
    assert admin.describe_cluster().result(30).authorized_operations is None


def test_every_broker_reports_its_api_versions(admin: AdminClient) -> None:
    ((node, versions),) = admin.describe_api_versions().result(30).all().items()
    metadata = next(each for each in versions if each.api_key == ApiKey.METADATA)
    assert (node.id, metadata.min_version, metadata.max_version) == (1, 0, 13)


def test_features_are_described_with_their_levels(admin: AdminClient) -> None:
    features = admin.describe_features().result(30)
    level = features.finalized_features["metadata.version"].max_version
    known = features.supported_features["metadata.version"]
    assert known.min_version <= level <= known.max_version
    same = {"metadata.version": FeatureUpdate(level)}
    admin.update_features(same, validate_only=True)["metadata.version"].result(30)
    lower = {"metadata.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}
    refused = admin.update_features(lower, validate_only=True)["metadata.version"].exception(30)
    assert isinstance(refused, KafkaException)


def test_the_metadata_quorum_has_a_leader_and_voters(admin: AdminClient) -> None:
    quorum = admin.describe_metadata_quorum().result(30)
    (voter,) = quorum.voters
    assert (quorum.leader_id, voter.replica_id) == (1, 1)
    assert voter.log_end_offset >= quorum.high_watermark > 0
    assert [endpoint.listener for endpoint in quorum.nodes[1]] == ["CONTROLLER"]


def test_a_voter_that_does_not_exist_cannot_be_removed(admin: AdminClient) -> None:
    refused = admin.remove_raft_voter(9, Uuid(1, 2)).exception(30)
    assert refused is not None
    assert refused.args[0] == KafkaError.VOTER_NOT_FOUND


def test_a_broker_that_is_not_registered_cannot_be_unregistered(admin: AdminClient) -> None:
    refused = admin.unregister_broker(9).exception(30)
    assert refused is not None
    assert refused.args[0] == KafkaError.BROKER_ID_NOT_REGISTERED


def test_log_directories_are_described_with_their_replicas(admin: AdminClient, topic: str) -> None:
    answers = admin.describe_log_dirs([1, 9])
    ((path, directory),) = answers[1].result(30).items()
    assert Path(path).is_dir()
    assert directory.error is None
    assert directory.total_bytes >= directory.usable_bytes > 0
    replica = directory.replica_infos[TopicPartition(topic, 0)]
    assert (replica.size, replica.offset_lag, replica.is_future) == (0, 0, False)
    assert answers[9].exception(30).args[0] == KafkaError._UNKNOWN_BROKER

    asked = [TopicPartitionReplica(topic, 0, 1), TopicPartitionReplica("nobody", 0, 1)]
    directories = admin.describe_replica_log_dirs(asked)
    assert directories[asked[0]].result(30).current_replica_log_dir == path
    assert directories[asked[1]].result(30).current_replica_log_dir is None


def test_replicas_move_only_to_existing_directories(admin: AdminClient, topic: str) -> None:
    (path,) = admin.describe_log_dirs([1])[1].result(30)
    stays, lost = TopicPartitionReplica(topic, 0, 1), TopicPartitionReplica(topic, 1, 1)
    moved = admin.alter_replica_log_dirs({stays: path, lost: "/nowhere"})
    assert moved[stays].result(30) is None
    assert moved[lost].exception(30).args[0] == KafkaError.LOG_DIR_NOT_FOUND


def test_invalid_reassignments_fail_one_by_one(admin: AdminClient, topic: str) -> None:
    away, gone = TopicPartition(topic, 0), TopicPartition("nobody", 0)
    answers = admin.alter_partition_reassignments({away: [9], gone: [1]})
    assert answers[away].exception(30).args[0] == KafkaError.INVALID_REPLICA_ASSIGNMENT
    assert answers[gone].exception(30).args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART
    nothing = admin.alter_partition_reassignments({away: None})[away].exception(30)
    assert nothing.args[0] == KafkaError.NO_REASSIGNMENT_IN_PROGRESS
    assert admin.list_partition_reassignments().result(30) == {}
    assert admin.list_partition_reassignments([away]).result(30) == {}


class TestControllers:
    """The same client, with bootstrap.controllers (KIP-919)."""

    @pytest.fixture
    def controllers(self, admin: AdminClient) -> str:
        quorum = admin.describe_metadata_quorum().result(30)
        endpoint = quorum.nodes[quorum.leader_id][0]
        return f"{endpoint.host}:{endpoint.port}"

    def test_controllers_serve_admin_requests_themselves(
        self, controllers: str, topic: str
    ) -> None:
        with AdminClient({"bootstrap.controllers": controllers}) as admin:
            cluster = admin.describe_cluster().result(30)
            (node,) = cluster.nodes
            assert f"{node.host}:{node.port}" == controllers
            assert admin.describe_metadata_quorum().result(30).leader_id == 1
            assert "metadata.version" in admin.describe_features().result(30).finalized_features
            resource = ConfigResource("broker", "1")
            assert admin.describe_configs([resource])[resource].result(30)["node.id"].value == "1"
            ((_, versions),) = admin.describe_api_versions().result(30).all().items()
            assert ApiKey.VOTE in {each.api_key for each in versions}

    def test_calls_that_only_brokers_serve_fail_at_once(self, controllers: str) -> None:
        with AdminClient({"bootstrap.controllers": controllers}) as admin:
            refused = admin.list_consumer_groups().exception(30)
        assert refused is not None
        assert refused.args[0] in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION)
