"""The sender of a request as the groups' coordinator remembers it."""

from functools import lru_cache

from barnabas.coordinator.groups.client import Client
from barnabas.server.call import Call


def client_of(call: Call) -> Client:
    return _client(call.client_id or "", call.host, call.api_version)


@lru_cache(maxsize=4096)
def _client(client_id: str, host: str, api_version: int) -> Client:
    """Kafka tells of a member's host as Java writes an address: after a slash."""
    return Client(client_id, f"/{host}", api_version)
