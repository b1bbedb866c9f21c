"""The errors with which a partition rejects requests."""

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition


def not_leader(partition: "Partition", leader_epoch: int = -1) -> KafkaError:
    """This replica does not lead, or not in the epoch of the request."""
    name = f"{partition.topic}-{partition.index}"
    if partition.error_code is not None:
        return KafkaError(partition.error_code, f"{name} is no longer served by this broker.")
    if 0 <= leader_epoch < partition.leader_epoch:
        return KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"{name} is at leader epoch {partition.leader_epoch}, the request at {leader_epoch}: "
            "refresh the metadata.",
        )
    if leader_epoch > partition.leader_epoch:
        return KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{name} is at leader epoch {partition.leader_epoch}, the request at {leader_epoch}: "
            "this broker does not have that metadata yet.",
        )
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {partition.node_id} does not lead {name}: refresh the metadata.",
    )


def unknown_replica(partition: "Partition", replica_id: int, leader_epoch: int) -> KafkaError:
    """The broker that fetches has no replica according to the metadata of this broker."""
    has_epoch = leader_epoch >= 0
    # The metadata may reach a new follower before its leader: UNKNOWN_LEADER_EPOCH is retried.
    return KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {replica_id} has no replica of {partition.topic}-{partition.index}.",
    )


def stale_broker_epoch(partition: "Partition", replica_id: int, replica_epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {replica_id} fetches {partition.topic}-{partition.index} with broker epoch "
        f"{replica_epoch}, but has registered again since.",
    )


def not_enough_replicas(partition: "Partition") -> KafkaError:
    in_sync = len(partition.state.isr) if partition.state is not None else 0
    return KafkaError(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"{partition.topic}-{partition.index} has {in_sync} in-sync replicas, its "
        f"min.insync.replicas is {partition.config.min_insync_replicas}.",
    )


def offset_out_of_range(partition: "Partition", offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {partition.topic}-{partition.index} is outside "
        f"[{partition.log.log_start_offset}, {partition.high_watermark}].",
    )
