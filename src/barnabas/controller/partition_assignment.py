"""New partitions: checks of manual assignments, and the initial state of a partition."""

from collections.abc import Sequence

from barnabas.controller.context import default_directory
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration, Replicas
from barnabas.wire.errors import ErrorCode, KafkaError


def new_partition(index: int, replicas: Replicas, image: MetadataImage) -> PartitionRegistration:
    """Returns a partition with all active replicas in sync, led by the first of them."""
    brokers = image.brokers
    isr = tuple(r for r in replicas if (broker := brokers.get(r)) is not None and broker.active)
    if not isr:
        raise _invalid_assignment(
            f"All brokers assigned to partition {index} are fenced or in controlled shutdown."
        )
    return PartitionRegistration(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(brokers.get(replica)) for replica in replicas),
    )


def validate_manual_assignment(
    replicas: Sequence[int], image: MetadataImage, replication_factor: int | None
) -> Replicas:
    """Returns the replicas if the assignment is valid.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT unless the brokers exist, are distinct, and are as
    many as `replication_factor`, if that is given.
    """
    if not replicas:
        raise _invalid_assignment("The manual partition assignment includes an empty replica list.")
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise _invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, which is not "
                "registered."
            )
        if replicas.count(broker_id) > 1:
            raise _invalid_assignment(
                f"The manual partition assignment includes broker {broker_id} more than once."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            f"replica(s), where the other partitions have {replication_factor}."
        )
    return tuple(replicas)


def _invalid_assignment(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
