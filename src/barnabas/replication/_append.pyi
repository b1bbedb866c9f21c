from barnabas.log import Log
from barnabas.replication.leader_state import LeaderState
from barnabas.replication.ports import DelayedOperations, PartitionHost
from barnabas.replication.topic_config import TopicConfig

class PartitionEnd:
    topic: str
    index: int
    log: Log
    config: TopicConfig
    host: PartitionHost
    purgatory: DelayedOperations
    leader_state: LeaderState | None
    high_watermark: int
    leader_epoch: int
    is_leader: bool
    is_under_min_isr: bool
    flush_before_ack_offset: int
    def on_appended(self, first_offset: int, size_bytes: int, now_ms: int) -> None: ...
