"""The sender of a request as the groups' coordinator remembers it."""

from barnabas.coordinator.groups.client import Client
from barnabas.server.call import Call


def client_of(call: Call) -> Client:
    # Kafka tells of a member's host as Java writes an address: after a slash.
    return Client(call.client_id or "", f"/{call.host}", call.api_version)
