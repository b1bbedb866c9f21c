"""Kafka's command-line tools on a broker."""

from tests.conformance.brokers import Broker, run_peer


def tool(target: Broker, name: str, *arguments: str, stdin: str | None = None) -> str:
    return run_peer("tool", name, "--bootstrap-server", target.bootstrap, *arguments, stdin=stdin)


def rows(printed: str) -> list[list[str]]:
    """Returns the cells of each line of a table below its header."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    return lines[1:]
