"""What a scrape is told of this node's part in the quorum, by the names of Kafka's metrics."""

from collections.abc import Iterator

from barnabas.raft import Quorum
from barnabas.server.metrics import Gauge

_RAFT = "kafka_server_raftmetrics_"


class QuorumGauges:
    """Looked up by each scrape."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    def __iter__(self) -> Iterator[Gauge]:
        quorum = self._quorum
        told = quorum.describe()
        yield Gauge(_RAFT + "current_state", 1, {"current_state": quorum.state_name})
        yield Gauge(_RAFT + "current_leader", told.leader_id)
        yield Gauge(_RAFT + "current_epoch", told.epoch)
        yield Gauge(_RAFT + "high_watermark", told.high_watermark)
        yield Gauge(_RAFT + "log_end_offset", told.end_offset)
        yield Gauge(_RAFT + "number_of_voters", len(told.voters))
        if quorum.is_leader:
            yield Gauge(_RAFT + "number_of_observers", len(told.observer_states))
