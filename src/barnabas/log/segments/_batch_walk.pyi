class BatchWalk:
    position: int
    next_offset: int
    unindexed_bytes: int
    max_timestamp: int
    offset_of_max_timestamp: int
    index_entries: list[tuple[int, int, int, int]]
    leader_epochs: list[tuple[int, int]]
    producer_batches: list[int]
    def __init__(
        self,
        position: int,
        next_offset: int,
        max_offset: int,
        unindexed_bytes: int,
        index_interval_bytes: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        leader_epoch: int,
    ) -> None: ...
    def walk(self, view: memoryview) -> int: ...
