"""Kafka's classes read every message in every version and write the same bytes."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conformance.brokers import PEERS
from tests.wire.declared_messages import EVERY_VERSION
from tests.wire.message_samples import fill, is_flexible, sample

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
"""Versions of Kafka 4.4, which the peer of version 4.3 does not have."""

WRITTEN_BY_HAND = {("AbortedTxn", 0)}
"""Messages without a generated class in Kafka."""


@pytest.mark.peer
def test_kafkas_classes_write_the_same_bytes() -> None:
    samples = []
    for message, version in EVERY_VERSION:
        samples.append((message, version, "new", message().write(version)))
        for seed in range(SAMPLES_EACH):
            encoded = encoded_sample(message, version, seed)
            samples.append((message, version, encoded.hex(), encoded))
    rewritten = rewritten_by_kafka(
        [f"{message.__name__} {version} {argument}" for message, version, argument, _ in samples]
    )
    unknown = set()
    for (message, version, _, encoded), actual in zip(samples, rewritten, strict=True):
        if actual == "unknown":
            unknown.add((message.__name__, version))
        else:
            assert actual == encoded.hex(), f"{message.__name__} version {version}"
    assert unknown == NEWER_THAN_THE_PEER | WRITTEN_BY_HAND
    assert len(EVERY_VERSION) - len(unknown) == 724


def encoded_sample(message: type[Message], version: int, seed: int) -> bytes:
    """Returns a message with every field set, or with random nulls, defaults and unknown tags."""
    if seed == 0:
        return sample(message, version).write(version)
    source = random.Random(seed)
    filled: Message = fill(message, version, source, unknown_tags=is_flexible(message, version))
    return filled.write(version)


def rewritten_by_kafka(lines: list[str]) -> list[str]:
    if shutil.which("java") is None or not (PEERS / "kafka").exists():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    directory = subprocess.run(
        [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
    ).stdout.strip()
    rewritten = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{directory}/libs/*", PROGRAM],
        input="\n".join(lines),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return rewritten.stdout.splitlines()
