"""Log lines about users, delegation tokens and quotas, when their changes are committed.

Names come from clients: they are quoted, so that nobody can write lines of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from barnabas.metadata.image import MetadataImage
from barnabas.security.authentication.exchange import quoted
from barnabas.security.scram_credentials import ScramMechanismCode
from barnabas.wire.messages.metadata_records import (
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.wire.schema import Message

log = logging.getLogger(__name__)

_ChangeT = TypeVar("_ChangeT")

_MAX_ENTITIES = 20
"""The users, tokens and entities of one request that have lines; the others are counted."""


@dataclass(slots=True)
class SecurityChanges:
    """What the records of one decision change, by user, token and entity."""

    users: dict[str, list[str]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, str]] = field(default_factory=dict)
    quotas: dict[str, list[str]] = field(default_factory=dict)

    def add(self, record: Message, image: MetadataImage) -> None:
        """Adds a record that is not yet applied to `image`."""
        match record:
            case UserScramCredentialRecord():
                change = f"{_mechanism(record.mechanism)} is set"
                self.users.setdefault(record.name, []).append(change)
            case RemoveUserScramCredentialRecord():
                change = f"{_mechanism(record.mechanism)} is removed"
                self.users.setdefault(record.name, []).append(change)
            case DelegationTokenRecord():
                event = "renewed" if record.token_id in image.tokens else "created"
                until = datetime.fromtimestamp(record.expiration_timestamp / 1000, UTC)
                change = f"{event}, until {until:%Y-%m-%d %H:%M} UTC"
                self.tokens[record.token_id] = quoted(record.owner), change
            case RemoveDelegationTokenRecord():
                token = image.tokens.get(record.token_id)
                owner = quoted(token.owner) if token is not None else "nobody"
                self.tokens[record.token_id] = owner, "removed"
            case ClientQuotaRecord():
                value = "is removed" if record.remove else f"= {record.value:g}"
                self.quotas.setdefault(_entity(record), []).append(f"{record.key} {value}")

    def log(self) -> None:
        for user, changes in _some(self.users):
            log.info("credentials of user %s: %s", quoted(user), ", ".join(changes))
        for token, (owner, change) in _some(self.tokens):
            log.info("delegation token %s of %s is %s", quoted(token), owner, change)
        for entity, changes in _some(self.quotas):
            log.info("quotas of %s: %s", entity, ", ".join(changes))
        for names, what in (
            (self.users, "users"),
            (self.tokens, "delegation tokens"),
            (self.quotas, "entities with quotas"),
        ):
            if len(names) > _MAX_ENTITIES:
                log.info("%d more %s have changed", len(names) - _MAX_ENTITIES, what)


def _some(changes: dict[str, _ChangeT]) -> Sequence[tuple[str, _ChangeT]]:
    return list(changes.items())[:_MAX_ENTITIES]


def _mechanism(code: int) -> str:
    try:
        return ScramMechanismCode(code).sasl_name
    except ValueError:
        return f"mechanism {code}"


def _entity(record: ClientQuotaRecord) -> str:
    return ", ".join(
        f"the default {part.entity_type}"
        if part.entity_name is None
        else f"{part.entity_type} {quoted(part.entity_name)}"
        for part in record.entity
    )
