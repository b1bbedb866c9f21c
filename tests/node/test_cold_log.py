"""A consumer reads a log that is on disk only, while the broker serves others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.page_cache import evict
from tests.testing.clients import produce, values

from barnabas.server.disk_reads import DiskReads, PendingRead
from barnabas.testing import Broker

RECORDS = 60
VALUE_BYTES = 100_000


def test_threads_load_what_a_consumer_reads_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, loads = DiskReads.run, []

    def counted(reads: DiskReads, read: Callable[[], None]) -> PendingRead[None]:
        loads.append(read)
        return run(reads, read)

    monkeypatch.setattr(DiskReads, "run", counted)
    produced = [bytes([number]) * VALUE_BYTES for number in range(RECORDS)]
    with Broker(directory=tmp_path) as broker:
        produce(broker.bootstrap_servers, "orders", *produced)
        assert not loads
        (segment,) = tmp_path.rglob("orders-0/*.log")
        evict(segment)
        assert values(broker.bootstrap_servers, "orders", RECORDS) == produced
    assert loads
