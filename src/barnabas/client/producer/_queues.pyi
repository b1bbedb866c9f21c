COMPILED: bool

class PartitionQueue:
    @property
    def topic_partition(self) -> tuple[str, int]: ...
    @property
    def first_batch_bytes(self) -> int: ...
