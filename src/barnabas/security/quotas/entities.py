"""The entities that have quotas, and the quotas that they can have.

An entity is a user, a client id, a user with a client id, or an IP address. The name None is the
default of all that have no quota of their own.
"""

from enum import StrEnum
from ipaddress import ip_address
from typing import Final

from barnabas.metadata.states import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1


class QuotaKey(StrEnum):
    """What a quota limits, with the names of requests and of the metadata log."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


CLIENT_KEYS: Final = frozenset(QuotaKey) - {QuotaKey.CONNECTION_CREATION_RATE}
IP_KEYS: Final = frozenset({QuotaKey.CONNECTION_CREATION_RATE})

_LARGEST_INTEGER: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: _MAX_LONG,
    QuotaKey.CONSUMER_BYTE_RATE: _MAX_LONG,
    QuotaKey.CONNECTION_CREATION_RATE: _MAX_INT,
}
"""The quotas that are whole numbers."""


def require_valid_entity(entity: QuotaEntity) -> None:
    """Raises ValueError if there can be no such entity."""
    types = [kind for kind, _ in entity]
    if not types:
        raise ValueError("The entity is empty: give a user, a client-id or an ip.")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise ValueError(f"Unknown entity type '{kind}'; there are user, client-id and ip.")
        if name == "":
            raise ValueError(f"The name of the {kind} is empty; null is the default.")
    if len(set(types)) < len(types):
        raise ValueError("A type of entity can appear once.")
    if IP in types and len(types) > 1:
        raise ValueError("An ip cannot be combined with a user or a client-id.")
    if entity[0][0] == IP and entity[0][1] is not None:
        require_ip_address(entity[0][1])


def require_ip_address(text: str) -> None:
    try:
        ip_address(text)
    except ValueError:
        raise ValueError(f"{text} is not an IP address.") from None


def require_valid_value(entity: QuotaEntity, key: str, value: float) -> None:
    """Raises ValueError if the entity cannot have this quota."""
    allowed = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    if key not in allowed:
        raise ValueError(f"{key} is not a quota of this entity; it can have {_listed(allowed)}.")
    if not value > 0:
        raise ValueError(f"Quota {key} must be greater than 0, not {value}.")
    largest = _LARGEST_INTEGER.get(QuotaKey(key))
    if largest is not None and not (float(value).is_integer() and value <= largest):
        raise ValueError(f"Quota {key} must be a whole number up to {largest}, not {value}.")


def _listed(keys: frozenset[QuotaKey]) -> str:
    return ", ".join(sorted(keys))
