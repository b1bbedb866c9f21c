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
class Identity:
    """An instance, as others see it."""

    host: str
    port: int
    eligible: bool = True
    scheme: str = "http"
    writes: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            document["host"],
            document["port"],
            document.get("master_eligibility", True),
            document.get("scheme") or "http",
            bool(document.get("leader", False)),
        )

    @classmethod
    def of_member(cls, content: bytes) -> Self | None:
        """By what it joined with; None between elections, or if it is no registry."""
        try:
            told = cls.read(json.loads(content))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return told if isinstance(told.host, str) else None

    def json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "version": _VERSION,
            "leader": self.writes,
        }

    def write(self) -> bytes:
        return json.dumps(self.json()).encode()


@dataclass(slots=True, frozen=True)
class Outcome:
    """What everybody is told: the member that writes, or nobody."""

    member_id: str | None
    identity: Identity | None
    error: int = NO_ERROR

    @classmethod
    def read(cls, content: bytes) -> Self:
        document = json.loads(content or b"{}")
        identity = document.get("master_identity")
        return cls(
            document.get("master"),
            None if identity is None else Identity.read(identity),
            document.get("error", NO_ERROR),
        )

    def write(self) -> bytes:
        document: dict[str, Any] = {"error": self.error}
        if self.member_id is not None and self.identity is not None:
            document |= {"master": self.member_id, "master_identity": self.identity.json()}
        return json.dumps({**document, "version": _VERSION}).encode()


def elect(members: Mapping[str, bytes]) -> Outcome:
    """Of the members, by id, with what each joined with; without those that are no registry."""
    told = {id_: Identity.of_member(content) for id_, content in members.items()}
    identities = {id_: identity for id_, identity in told.items() if identity is not None}
    urls = {identity.url for identity in identities.values()}
    error = NO_ERROR if len(urls) == len(identities) else DUPLICATE_URLS
    eligible = sorted(
        (id_ for id_, identity in identities.items() if identity.eligible),
        key=lambda id_: identities[id_].url,
    )
    writing = [id_ for id_ in eligible if identities[id_].writes]
    chosen = writing[0] if len(writing) == 1 else next(iter(eligible), None)
    if chosen is None:
        return Outcome(None, None, error)
    return Outcome(chosen, replace(identities[chosen], writes=False), error)
