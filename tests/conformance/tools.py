"""Kafka's own command-line tools, run on a broker."""

from tests.conformance.brokers import Broker, peer


def tool(target: Broker, name: str, *arguments: str, stdin: str | None = None) -> str:
    return peer("tool", name, "--bootstrap-server", target.bootstrap, *arguments, stdin=stdin)


def rows(printed: str) -> list[list[str]]:
    """The cells of each line of a table below its heading."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    return lines[1:]
