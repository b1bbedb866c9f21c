"""Real workers are replaced by ours, and back: settings, states and positions are kept."""

from pathlib import Path
from uuid import uuid4

import pytest
from tests.conformance.brokers import Broker, is_peer_installed
from tests.conformance.connect.workers import BarnabasWorker, ConnectWorker, KafkaWorker
from tests.wait import wait_until

pytestmark = pytest.mark.peer

_STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_workers_of_both_kinds_replace_each_other(
    broker: Broker, tmp_path: Path, support: str
) -> None:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    group = f"replaced-{uuid4().hex[:8]}"
    settings = {
        "group.id": group,
        "exactly.once.source.support": support,
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
    }
    lines, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    lines.write_text("")
    expected = ""
    kinds: tuple[type[ConnectWorker], ...] = (
        KafkaWorker,
        BarnabasWorker,
        KafkaWorker,
        BarnabasWorker,
    )
    for turn, kind in enumerate(kinds):
        worker = kind(tmp_path / str(turn), broker.bootstrap, settings)
        worker.start()
        try:
            if turn == 0:
                _create(worker, group, lines, copy)
            wait_until(
                lambda worker=worker: worker.api.states("source") == ("RUNNING", ["RUNNING"]),
                f"the source runs in turn {turn}",
                60,
            )
            names = worker.api("GET", "/connectors").json
            assert sorted(names) == ["paused", "sink", "source"]
            assert worker.api("GET", "/connectors/paused/status").json["connector"]["state"] in (
                "PAUSED",
                "UNASSIGNED",
            )
            with lines.open("a") as file:
                file.write(f"turn {turn}\n")
            expected += f"turn {turn}\n"
            wait_until(
                lambda expected=expected: copy.exists() and copy.read_text() == expected,
                f"each line arrives once in turn {turn}",
                60,
            )
            wait_until(
                lambda worker=worker, expected=expected: _position(worker) == len(expected),
                f"the position is stored in turn {turn}",
                60,
            )
            topics = worker.api("GET", "/connectors/source/topics").json
            assert topics == {"source": {"topics": [group]}}
        finally:
            worker.stop()


def _create(worker: ConnectWorker, topic: str, lines: Path, copy: Path) -> None:
    shared = {"key.converter": _STRING_CONVERTER, "value.converter": _STRING_CONVERTER}
    source = {"connector.class": "FileStreamSource", "topic": topic, "file": str(lines)}
    sink = {"connector.class": "FileStreamSink", "topics": topic, "file": str(copy)}
    paused = {"connector.class": "FileStreamSink", "topics": topic, "file": f"{copy}.paused"}
    for name, config in {"source": source, "sink": sink, "paused": paused}.items():
        created = worker.api("PUT", f"/connectors/{name}/config", config | shared)
        assert created.status == 201
    wait_until(lambda: worker.api.states("paused") is not None, "it has a status", 60)
    assert worker.api("PUT", "/connectors/paused/pause").status == 202


def _position(worker: ConnectWorker) -> int | None:
    offsets = worker.api("GET", "/connectors/source/offsets").json["offsets"]
    assert len(offsets) <= 1  # both kinds write the same key
    return offsets[0]["offset"]["position"] if offsets else None
