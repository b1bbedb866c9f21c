"""Why a partition does not do what it is asked, in the protocol's codes."""

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replication.replica import Replica


def not_served(partition: "Replica", leader_epoch: int = -1) -> KafkaError:
    """It is not led here, or not in the epoch that the caller believes."""
    name = f"{partition.topic}-{partition.index}"
    if partition.failure is not None:
        return KafkaError(partition.failure, f"{name} is not served here any more.")
    if 0 <= leader_epoch < partition.leader_epoch:
        return KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"{name} is at leader epoch {partition.leader_epoch}, the request at {leader_epoch}: "
            "refresh the metadata.",
        )
    if leader_epoch > partition.leader_epoch:
        return KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{name} is at leader epoch {partition.leader_epoch} here and at {leader_epoch} in "
            "the request: this broker will learn of it.",
        )
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {partition.node_id} does not lead {name}: refresh the metadata.",
    )


def no_replica(partition: "Replica", replica_id: int, leader_epoch: int) -> KafkaError:
    """A broker that has no replica, as far as is known here, fetches as a follower."""
    knows_epochs = leader_epoch >= 0
    # One that is to have a replica may know before its leader does: it will try again.
    return KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epochs else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {replica_id} has no replica of {partition.topic}-{partition.index}.",
    )


def stale_replica(partition: "Replica", replica_id: int, replica_epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"broker {replica_id} fetches {partition.topic}-{partition.index} with its former epoch "
        f"{replica_epoch}: it has registered again since.",
    )


def too_few_replicas(partition: "Replica") -> KafkaError:
    in_sync = len(partition.state.isr) if partition.state is not None else 0
    return KafkaError(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"{partition.topic}-{partition.index} has {in_sync} replicas in sync, its "
        f"min.insync.replicas is {partition.rules.min_insync_replicas}.",
    )


def out_of_range(partition: "Replica", offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {partition.topic}-{partition.index} is outside "
        f"[{partition.log.start_offset}, {partition.high_watermark}].",
    )
