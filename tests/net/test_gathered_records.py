"""Records in several buffers are sent in the right order without being copied."""

from barnabas.net.api_versions import ApiCodec
from barnabas.net.frame_transport import GatheredRecords, frame_buffers
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def a_request(*records: object) -> ProduceRequest:
    partitions = [
        PartitionProduceData(index=index, records=batches)  # type: ignore[arg-type]
        for index, batches in enumerate(records)
    ]
    topic = TopicProduceData(name="t", partition_data=partitions)
    return ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic])


def encoded(request: ProduceRequest, version: int = 9) -> list[bytes | bytearray | memoryview]:
    return frame_buffers(ApiCodec(ApiKey.PRODUCE, version).encode(request, 1, b"c"))


def test_gathered_buffers_make_the_same_frame_as_joined_ones() -> None:
    for version in (3, 9):
        joined = encoded(a_request(b"ab", b"cdef", b""), version)
        gathered = encoded(
            a_request(GatheredRecords([b"a", b"b"]), GatheredRecords([b"cd", b"e", b"f"]), b""),
            version,
        )
        assert b"".join(gathered) == b"".join(joined)


def test_gathered_buffers_are_not_copied() -> None:
    batch = bytearray(b"x" * 100_000)
    assert any(part is batch for part in encoded(a_request(GatheredRecords([batch]))))
