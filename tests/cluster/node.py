"""The programs of a node: Barnabas, or the real Kafka with the same files."""

import os

from tests.conformance.brokers import PEERS

from barnabas.testing.process_node import BARNABAS, NodeProgram, NodeRole, ProcessNode

__all__ = ["BARNABAS", "KAFKA", "PROGRAMS", "NodeProgram", "NodeRole", "ProcessNode"]


def _java_options(node: ProcessNode) -> dict[str, str]:
    # A JVM that runs for a minute needs no optimizing compiler.
    options = "-Dpeer.log.level=INFO -XX:TieredStopAtLevel=1"
    if node.hosts_file.exists():
        options += f" -Djdk.net.hosts.file={node.hosts_file}"
    return {
        "KAFKA_HEAP_OPTS": os.environ.get("KAFKA_HEAP_OPTS", "-Xmx256M"),
        "KAFKA_OPTS": options,
    }


_tool = (str(PEERS / "kafka"), "tool")

KAFKA = NodeProgram(
    "kafka",
    storage=(*_tool, "storage"),
    start=(*_tool, "kafka.Kafka"),
    environment=_java_options,
)
PROGRAMS = {program.name: program for program in (BARNABAS, KAFKA)}
