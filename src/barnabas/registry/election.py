"""Who of several instances writes: agreed on by Kafka's group protocol, as Confluent's does.

Every instance is a member of one group (protocol type `sr`) and says where it can be reached.
Whoever the coordinator makes the group's leader elects: who writes already, if it is still
there; else the first by its URL. An election is about who should write. That nobody else can is
seen to by the log.
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
    """An instance, as others see it."""

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
        """By what it joined with; None between elections, or if it is no registry."""
        try:
            told = cls.from_json(json.loads(content))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return told if isinstance(told.host, str) else None

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
    """What everybody is told: the member that writes, or nobody."""

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
    """Of the members, by id, with what each joined with; without those that are no registry."""
    told = {id_: InstanceIdentity.from_member_metadata(content) for id_, content in members.items()}
    identities = {id_: identity for id_, identity in told.items() if identity is not None}
    urls = {identity.url for identity in identities.values()}
    error = NO_ERROR if len(urls) == len(identities) else DUPLICATE_URLS
    eligible = sorted(
        (id_ for id_, identity in identities.items() if identity.is_eligible),
        key=lambda id_: identities[id_].url,
    )
    writing = [id_ for id_ in eligible if identities[id_].is_leader]
    chosen = writing[0] if len(writing) == 1 else next(iter(eligible), None)
    if chosen is None:
        return ElectionOutcome(None, None, error)
    return ElectionOutcome(chosen, replace(identities[chosen], is_leader=False), error)
