"""How kafka-configs describes and alters users, clients and ips."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.operations import configs as operations
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

_ENTITY_LABELS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


async def describe_client_configs(
    admin: "AioAdminClient", entities: Sequence[operations.EntityName]
) -> None:
    for entity, quotas in (await operations.describe_quotas(admin, entities)).items():
        named = ", ".join(
            f"{label} '{name}'" if (name := entity.entries[kind]) else f"the default {label}"
            for kind, label in _ENTITY_LABELS.items()
            if kind in entity.entries
        )
        values = ", ".join(f"{key}={value}" for key, value in quotas.items())
        print(f"Quota configs for {named} are {values}")
    kind, name = entities[0]
    if len(entities) > 1 or kind != "users" or name == "":
        return
    for user, described in (await operations.describe_credentials(admin, name)).items():
        names = {mechanism: name for name, mechanism in operations.SCRAM_MECHANISMS.items()}
        credentials = ", ".join(
            f"{names[credential.mechanism]}=iterations={credential.iterations}"
            for credential in described.scram_credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{user}' are {credentials}")


async def alter_client_configs(
    admin: "AioAdminClient",
    entities: Sequence[operations.EntityName],
    added: Mapping[str, str],
    deleted: Collection[str],
) -> None:
    kind, name = entities[0]
    names = [*added, *deleted]
    scram = [name for name in names if name in operations.SCRAM_MECHANISMS]
    if kind == "ips":
        _require(names, operations.IP_QUOTAS, "connection quota", kind)
    elif kind == "users" and len(entities) == 1:
        allowed = (*operations.USER_QUOTAS, *operations.SCRAM_MECHANISMS)
        _require(names, allowed, "quota and SCRAM credential", kind)
    else:
        _require(names, operations.USER_QUOTAS, "quota", "clients")
    if not scram:
        return await operations.alter_quotas(admin, entities, added, deleted)
    if not name:
        raise CommandError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    if len(scram) < len(names):
        raise CommandError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' "
            "using --bootstrap-server."
        )
    return await operations.alter_credentials(admin, name, added, deleted)


def _require(names: Sequence[str], allowed: Sequence[str], what: str, kind: str) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise CommandError(
            f"Only {what} configs can be added for '{kind}' using --bootstrap-server. Unexpected "
            f"config names: {','.join(unknown)}"
        )
