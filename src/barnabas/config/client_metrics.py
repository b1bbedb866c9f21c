"""Settings of a client metrics subscription (KIP-714): which clients push which metrics."""

from barnabas.config.checks import ListOf
from barnabas.config.setting import INT, LIST, MEDIUM, Setting, declare

SETTINGS = declare(
    Setting("interval.ms", INT, 300_000, MEDIUM),
    Setting("match", LIST, (), MEDIUM, ListOf(may_be_empty=True)),
    Setting("metrics", LIST, (), MEDIUM, ListOf(may_be_empty=True)),
)

SHORTEST_INTERVAL_MS = 100
LONGEST_INTERVAL_MS = 3_600_000

_CLIENT_FIELDS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def is_client_pattern(text: str) -> bool:
    """Whether `text` is a field of a client, `=`, and a regular expression for its value."""
    import re

    field, _, pattern = text.partition("=")
    if field.strip() not in _CLIENT_FIELDS or not pattern.strip():
        return False
    try:
        re.compile(pattern.strip())
    except re.error:
        return False
    return True
