"""KRaft: consensus on the metadata log.

`raft_node` is the state machine, without clock, socket or file. `Quorum` connects it to time, to
the other nodes and to Kafka's files: the log in `__cluster_metadata-0`, the snapshots beside it,
and `quorum-state`.
"""

from barnabas.raft.addresses import QuorumLeader, RequestOrigin
from barnabas.raft.commit_publisher import QuorumListener
from barnabas.raft.metadata_log import CommittedBatch
from barnabas.raft.quorum import Quorum, QuorumRequest
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.quorum_description import QuorumDescription
from barnabas.raft.snapshots import (
    METADATA_TOPIC,
    SnapshotId,
    SnapshotWriter,
    format_metadata,
    read_bootstrap,
)
from barnabas.raft.voters import QuorumError, VoterEndpoint, VoterNode, VoterSet

__all__ = [
    "METADATA_TOPIC",
    "CommittedBatch",
    "Quorum",
    "QuorumConfig",
    "QuorumDescription",
    "QuorumError",
    "QuorumLeader",
    "QuorumListener",
    "QuorumRequest",
    "RequestOrigin",
    "SnapshotId",
    "SnapshotWriter",
    "VoterEndpoint",
    "VoterNode",
    "VoterSet",
    "format_metadata",
    "read_bootstrap",
]
