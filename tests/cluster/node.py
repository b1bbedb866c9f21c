"""Who plays a node of a cluster: Barnabas, or the real Kafka from the same files."""

import os

from tests.conformance.brokers import PEERS

from barnabas.testing.process_node import BARNABAS, NodeProgram, NodeRole, ProcessNode

__all__ = ["BARNABAS", "KAFKA", "PROGRAMS", "ProcessNode", "NodeProgram", "NodeRole"]


def _java_options(node: ProcessNode) -> dict[str, str]:
    # A JVM that lives for a minute had better not optimise for hours.
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
