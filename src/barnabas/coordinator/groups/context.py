"""Who speaks to a group's coordinator."""

from typing import NamedTuple


class GroupClient(NamedTuple):
    """The sender of a request, as groups remember and describe it."""

    client_id: str
    host: str
    """As Kafka writes it: a slash and the address."""
    api_version: int
