"""What users, clients and addresses may take (quotas), and how users log in (SCRAM).

A broker that has neither says so: UNSUPPORTED_VERSION.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from barnabas.cli.work.refused import Refused
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.enums import ScramMechanism
from barnabas.client.admin.quotas import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
)
from barnabas.client.admin.scram import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)

QUOTA_TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
USER_QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
IP_QUOTAS = ("connection_creation_rate",)
DEFAULT_ITERATIONS = 4096

_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")

Named = tuple[str, str | None]
"""The kind of an entity and its name: "" for the default, None for all of the kind."""


async def describe_quotas(
    admin: AioAdminClient, entities: Sequence[Named]
) -> dict[ClientQuotaEntity, dict[str, float]]:
    components = []
    for kind, name in entities:
        quota_type = QUOTA_TYPES[kind]
        if name is None:
            components.append(ClientQuotaFilterComponent.of_entity_type(quota_type))
        elif name == "":
            components.append(ClientQuotaFilterComponent.of_default_entity(quota_type))
        else:
            components.append(ClientQuotaFilterComponent.of_entity(quota_type, name))
    return await admin.describe_client_quotas(ClientQuotaFilter.contains_only(components))


async def alter_quotas(
    admin: AioAdminClient,
    entities: Sequence[Named],
    added: Mapping[str, str],
    deleted: Collection[str],
) -> None:
    known = await describe_quotas(admin, entities)
    present = next(iter(known.values()), {})
    if missing := [each for each in deleted if each not in present]:
        raise Refused(f"Invalid config(s): {','.join(missing)}")
    entity = ClientQuotaEntity({QUOTA_TYPES[kind]: name or None for kind, name in entities})
    values: dict[str, float | None] = {name: _rate(name, text) for name, text in added.items()}
    alteration = ClientQuotaAlteration(entity, values | dict.fromkeys(deleted))
    (await admin.alter_client_quotas([alteration])).all()


async def describe_credentials(
    admin: AioAdminClient, user: str | None
) -> dict[str, UserScramCredentialsDescription]:
    return (await admin.describe_user_scram_credentials([user] if user else None)).all()


async def alter_credentials(
    admin: AioAdminClient, user: str, added: Mapping[str, str], deleted: Collection[str]
) -> None:
    """`added` has `[iterations=4096,]password=...` by mechanism."""
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialDeletion(user, MECHANISMS[each]) for each in deleted
    ]
    for mechanism, text in added.items():
        match = _CREDENTIAL.fullmatch(text)
        if match is None:
            raise Refused(f"Invalid credential property {mechanism}={text}")
        given, password = match.groups()
        iterations = DEFAULT_ITERATIONS if given in (None, "", "-1") else int(given)
        if iterations < DEFAULT_ITERATIONS:
            raise Refused(
                f"Iterations {iterations} is less than the minimum {DEFAULT_ITERATIONS} required "
                f"for {mechanism}"
            )
        wanted = ScramCredentialInfo(MECHANISMS[mechanism], iterations)
        changes.append(UserScramCredentialUpsertion(user, wanted, password.encode()))
    (await admin.alter_user_scram_credentials(changes)).all()


def _rate(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(f"Cannot parse quota configuration value for {name}: {text}") from None
