from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.compression import Buffer

COMPILED: bool

VALID: int
NOT_ONE_BATCH: int
TOO_LARGE: int
WRONG_CHECKSUM: int
WRONG_COUNT: int
WRONG_LAST_OFFSET: int
WRONG_BASE_OFFSET: int
CONTROL_BATCH: int
HAS_DELETE_HORIZON: int
WRONG_PRODUCER: int
HAS_APPEND_TIME: int
UNKNOWN_CODEC: int
NOT_DECOMPRESSED: int
MALFORMED_RECORD: int
REJECTED_RECORDS: int

class ValidBatch:
    buffer: memoryview | bytearray
    size_bytes: int
    base_offset: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    header_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    max_timestamp: int
    def __init__(
        self,
        header: BatchHeader | None = None,
        buffer: memoryview | bytearray | None = None,
        max_timestamp: int = -1,
    ) -> None: ...
    @property
    def header(self) -> BatchHeader: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    def release(self) -> None: ...
    def assign_offset(self, base_offset: int, leader_epoch: int) -> None: ...

class BatchChecker:
    body: Buffer | None
    error: str
    malformed: int
    earliest: int
    latest: int
    codec: int
    has_append_time: bool
    def forget(self) -> None: ...
    def use(self, rules: object, now_ms: int) -> None: ...
    def check_batch(self, batch: ValidBatch, records: memoryview) -> int: ...
