from typing import Any

from barnabas.replication import Partition
from barnabas.server.fetching.fetch_session import FetchSession, SessionPartition

class PartitionRead:
    requested: SessionPartition | None
    partition: Partition
    name: Any  # str, or from v13 on bytes
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    records: Any  # LogSlice | None
    aborted_transactions: list[tuple[int, int]] | None
    counted_bytes: int
    high_watermark: int
    stable_offset: int
    start_offset: int

class PlainFetchRequest:
    session: FetchSession | None
    generation: int | None
    by_id: bool
    min_bytes: int
    max_bytes: int
    next_epoch: int
