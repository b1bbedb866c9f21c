from collections.abc import Callable

from barnabas.client.errors import KafkaError

COMPILED: bool

class ProducerBatch:
    number: int
    number_span: int
    sequence: int
    attempts: int
    may_be_appended: bool
    topic: str
    partition: int
    @property
    def topic_partition(self) -> tuple[str, int]: ...
    buffer: bytearray
    size_bytes: int
    buffered_bytes: int
    max_record_bytes: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    created_s: float
    is_closed: bool
    is_done: bool
    error: KafkaError | None
    base_offset: int
    append_time_ms: int
    def __init__(self, topic: str, partition: int, buffer_bytes: int, now_s: float) -> None: ...
    @staticmethod
    def from_encoded(
        topic: str,
        partition: int,
        encoded: bytearray,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        now_s: float,
        callback: Callable[[KafkaError | None, int], object] | None,
    ) -> ProducerBatch: ...
    def trim(self) -> None: ...
    def close(self) -> None: ...
    def make_part(self, encoded: bytearray, first: int, count: int) -> ProducerBatch: ...
    def complete(self, base_offset: int = -1, append_time_ms: int = -1) -> None: ...
    def fail(self, error: KafkaError) -> None: ...
    def prepare_reports(self, only_errors: bool) -> bool: ...
    def run_callbacks(self) -> int: ...
