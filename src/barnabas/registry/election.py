"""Elects the registry's leader, the one instance that writes, by Kafka's group protocol.

As in Confluent's registry, every instance is a member of one group (protocol type `sr`) and joins
with its address. The member that the coordinator makes the group's leader elects the registry's
leader: the present one if it is still a member, else the first eligible one by URL. The election
decides which instance should write. The log ensures that no other can.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

PROTOCOL_TYPE = "sr"
PROTOCOL_NAME = "v0"
_VERSION = 1
NO_ERROR = 0
DUPLICATE_URLS = 1


@dataclass(slots=True, frozen=True)
class InstanceIdentity:
    """The address of an instance, and whether it is the leader or may become it."""

    host: str
    port: int
    is_eligible: bool = True
    scheme: str = "http"
    is_leader: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            document["host"],
            document["port"],
            document.get("master_eligibility", True),
            document.get("scheme") or "http",
            bool(document.get("leader", False)),
        )

    @classmethod
    def from_member_metadata(cls, content: bytes) -> Self | None:
        """Reads the metadata that a member joined with. Returns None if it is no registry's."""
        try:
            identity = cls.from_json(json.loads(content))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return identity if isinstance(identity.host, str) else None

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "version": _VERSION,
            "leader": self.is_leader,
        }

    def encode(self) -> bytes:
        return json.dumps(self.to_json()).encode()


@dataclass(slots=True, frozen=True)
class ElectionOutcome:
    """The assignment that every member receives: the leader, or None."""

    member_id: str | None
    identity: InstanceIdentity | None
    error: int = NO_ERROR

    @classmethod
    def decode(cls, content: bytes) -> Self:
        document = json.loads(content or b"{}")
        identity = document.get("master_identity")
        return cls(
            document.get("master"),
            None if identity is None else InstanceIdentity.from_json(identity),
            document.get("error", NO_ERROR),
        )

    def encode(self) -> bytes:
        document: dict[str, Any] = {"error": self.error}
        if self.member_id is not None and self.identity is not None:
            document |= {"master": self.member_id, "master_identity": self.identity.to_json()}
        return json.dumps({**document, "version": _VERSION}).encode()


def elect(members: Mapping[str, bytes]) -> ElectionOutcome:
    """Elects among members, given by id with their metadata, ignoring any that is no registry."""
    decoded = {
        id_: InstanceIdentity.from_member_metadata(metadata) for id_, metadata in members.items()
    }
    identities = {id_: identity for id_, identity in decoded.items() if identity is not None}
    urls = {identity.url for identity in identities.values()}
    error = NO_ERROR if len(urls) == len(identities) else DUPLICATE_URLS
    eligible = sorted(
        (id_ for id_, identity in identities.items() if identity.is_eligible),
        key=lambda id_: identities[id_].url,
    )
    leaders = [id_ for id_ in eligible if identities[id_].is_leader]
    elected = leaders[0] if len(leaders) == 1 else next(iter(eligible), None)
    if elected is None:
        return ElectionOutcome(None, None, error)
    return ElectionOutcome(elected, replace(identities[elected], is_leader=False), error)
