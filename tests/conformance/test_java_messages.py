"""Every message at every version, read and rewritten by Kafka's own classes: the same bytes."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conformance.brokers import PEERS
from tests.wire.declared import EVERY_VERSION
from tests.wire.filling import fill, is_flexible, sample

from barnabas.wire.schema import Message

PROGRAM = Path(__file__).parent / "java" / "RewriteMessages.java"

SAMPLES_EACH = 8

NEWER_THAN_THE_PEER = {
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("DeleteGroupsRequest", 3),
    ("DeleteGroupsResponse", 3),
    ("StreamsGroupDescribeRequest", 1),
    ("StreamsGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatRequest", 1),
    ("StreamsGroupHeartbeatResponse", 1),
    ("StreamsGroupTopologyDescriptionUpdateRequest", 0),
    ("StreamsGroupTopologyDescriptionUpdateResponse", 0),
    ("TxnOffsetCommitRequest", 6),
    ("TxnOffsetCommitResponse", 6),
    ("UnregisterControllerRequest", 0),
    ("UnregisterControllerResponse", 0),
}
"""What the facts have from Kafka 4.4, where the peer is 4.3."""

WRITTEN_BY_HAND = {("AbortedTxn", 0)}
"""What the peer has no generated class for."""


@pytest.mark.peer
def test_kafkas_classes_write_the_same_bytes() -> None:
    asked = []
    for message, version in EVERY_VERSION:
        asked.append((message, version, "new", message().write(version)))
        for seed in range(SAMPLES_EACH):
            encoded = encoded_sample(message, version, seed)
            asked.append((message, version, encoded.hex(), encoded))
    answers = rewritten_by_kafka(
        [f"{message.__name__} {version} {question}" for message, version, question, _ in asked]
    )
    unknown = set()
    for (message, version, _, encoded), answer in zip(asked, answers, strict=True):
        if answer == "unknown":
            unknown.add((message.__name__, version))
        else:
            assert answer == encoded.hex(), f"{message.__name__} version {version}"
    assert unknown == NEWER_THAN_THE_PEER | WRITTEN_BY_HAND
    assert len(EVERY_VERSION) - len(unknown) == 724


def encoded_sample(message: type[Message], version: int, seed: int) -> bytes:
    """One message with every field set, the others with nulls, defaults and unknown tags too."""
    if seed == 0:
        return sample(message, version).write(version)
    source = random.Random(seed)
    filled: Message = fill(message, version, source, unknown_tags=is_flexible(message, version))
    return filled.write(version)


def rewritten_by_kafka(lines: list[str]) -> list[str]:
    if shutil.which("java") is None or not (PEERS / "kafka").exists():
        pytest.skip("the real Kafka is not here: set PEERS to the folder of its script")
    home = subprocess.run(
        [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
    ).stdout.strip()
    answers = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{home}/libs/*", PROGRAM],
        input="\n".join(lines),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return answers.stdout.splitlines()
