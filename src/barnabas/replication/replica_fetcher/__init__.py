"""The follower's side of replication: fetches from leaders, and makes logs like theirs.

Begin with `replica_fetcher.py`, which has no I/O; `manager.py` follows the metadata.
"""

from barnabas.replication.replica_fetcher.followed_partition import (
    FollowedPartition,
    PartitionFetchState,
)
from barnabas.replication.replica_fetcher.manager import ReplicaFetcherManager

__all__ = ["FollowedPartition", "PartitionFetchState", "ReplicaFetcherManager"]
