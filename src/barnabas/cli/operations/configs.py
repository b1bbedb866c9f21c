"""Configs of topics, brokers, groups and client metrics; client quotas and SCRAM credentials."""

import re
from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.setting_warnings import warn_of_settings
from barnabas.cli.operations.settings import shown_without_value
from barnabas.cli.operations.topics import topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.model import (
    AlterConfigOpType,
    ConfigSource,
    ResourceType,
    ScramMechanism,
)
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
from barnabas.client.errors import KafkaError

ALL_BROKERS = ""
"""The name of the cluster-wide default of brokers."""

_KEY = re.compile(r"[a-zA-Z0-9._-]*")
_NOT_IN_BRACKETS = r"(?=[^\]]*(?:\[|$))"


class EntityType(Enum):
    """What has configs, by the plural that options use."""

    TOPICS = "topics"
    BROKERS = "brokers"
    BROKER_LOGGERS = "broker-loggers"
    GROUPS = "groups"
    CLIENT_METRICS = "client-metrics"

    @property
    def singular(self) -> str:
        """The singular, as Kafka's commands form it."""
        return self.value[:-1]


_RESOURCES = {
    EntityType.TOPICS: ResourceType.TOPIC,
    EntityType.BROKERS: ResourceType.BROKER,
    EntityType.BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    EntityType.GROUPS: ResourceType.GROUP,
    EntityType.CLIENT_METRICS: ResourceType.CLIENT_METRICS,
}
_OWN = {
    EntityType.TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    EntityType.BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG,
    EntityType.GROUPS: ConfigSource.GROUP_CONFIG,
    EntityType.CLIENT_METRICS: ConfigSource.CLIENT_METRICS_CONFIG,
}


async def describe_configs(
    admin: AioAdminClient, kind: EntityType, name: str, *, everything: bool = False
) -> list[ConfigEntry]:
    """Returns the dynamic configs of an entity by name; with `everything` all its configs."""
    require_broker_id(kind, name)
    resource = ConfigResource(_RESOURCES[kind], name)
    described = (await admin.describe_configs([resource]))[resource]
    own = _OWN.get(kind)
    if kind is EntityType.BROKERS and name == ALL_BROKERS:
        own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return sorted(
        (
            entry
            for entry in described.values()
            if everything or own is None or config_source(entry) is own
        ),
        key=lambda entry: entry.name,
    )


async def entity_names(admin: AioAdminClient, kind: EntityType) -> list[str]:
    """Returns the names of all entities of a type; the default of brokers is last."""
    match kind:
        case EntityType.TOPICS:
            return await topic_names(admin)
        case EntityType.BROKERS | EntityType.BROKER_LOGGERS:
            cluster = await admin.describe_cluster()
            ids = sorted(node.id for node in cluster.nodes)
            return [*map(str, ids), *([ALL_BROKERS] if kind is EntityType.BROKERS else [])]
        case EntityType.GROUPS:
            listed = await admin.list_consumer_groups()
            resources = await admin.list_config_resources([ResourceType.GROUP])
            named = {resource.name for resource in resources}
            return sorted(named | {group.group_id for group in listed.valid})
        case EntityType.CLIENT_METRICS:
            resources = await admin.list_config_resources([ResourceType.CLIENT_METRICS])
            return sorted(resource.name for resource in resources)


async def alter_configs(
    admin: AioAdminClient,
    kind: EntityType,
    name: str,
    added: Mapping[str, str],
    deleted: Collection[str] = (),
) -> None:
    """Sets some configs of an entity, and deletes others."""
    require_broker_id(kind, name)
    if kind is EntityType.BROKER_LOGGERS:
        loggers = {entry.name for entry in await describe_configs(admin, kind, name)}
        if unknown := [logger for logger in (*deleted, *added) if logger not in loggers]:
            raise CommandError(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in added.items()
    ]
    changes += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in deleted
    ]
    resource = ConfigResource(_RESOURCES[kind], name, incremental_configs=changes)
    (await admin.incremental_alter_configs([resource])).all()
    await warn_of_settings(admin, resource, added)


def require_broker_id(kind: EntityType, name: str) -> None:
    """Raises CommandError if the name of a broker or broker logger is not a broker id."""
    if kind in (EntityType.BROKERS, EntityType.BROKER_LOGGERS) and name and not name.isdecimal():
        raise CommandError(
            f"The entity name for {kind.value} must be a valid integer broker id, but it is: {name}"
        )


def parse_added(text: str) -> dict[str, str]:
    """Parses `k1=v1,k2=[v1,v2]`, where brackets enclose a list."""
    added = {}
    for pair in re.split("," + _NOT_IN_BRACKETS, text):
        halves = re.split(r"\s*=\s*" + _NOT_IN_BRACKETS, pair)
        if len(halves) != 2:
            raise CommandError(
                "Invalid entity config: all configs to be added must be in the format "
                f'"key=val": {shown_without_value(pair)}'
            )
        added[halves[0].strip()] = re.sub(r"[\[\]]", "", halves[1]).strip()
    return require_keys(added)


def require_keys(added: dict[str, str]) -> dict[str, str]:
    for key in added:
        if not _KEY.fullmatch(key):
            raise CommandError(f"Invalid character found for config key: {key}")
    return added


def config_source(entry: ConfigEntry) -> ConfigSource:
    source = entry.source
    return source if isinstance(source, ConfigSource) else ConfigSource(source)


QUOTA_TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
SCRAM_MECHANISMS = {
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

EntityName = tuple[str, str | None]
"""The type and the name of an entity: "" for the default, None for all of the type."""


async def describe_quotas(
    admin: AioAdminClient, entities: Sequence[EntityName]
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
    entities: Sequence[EntityName],
    added: Mapping[str, str],
    deleted: Collection[str],
) -> None:
    described = await describe_quotas(admin, entities)
    present = next(iter(described.values()), {})
    if missing := [name for name in deleted if name not in present]:
        raise CommandError(f"Invalid config(s): {','.join(missing)}")
    entity = ClientQuotaEntity({QUOTA_TYPES[kind]: name or None for kind, name in entities})
    values: dict[str, float | None] = {name: _rate(name, text) for name, text in added.items()}
    alteration = ClientQuotaAlteration(entity, values | dict.fromkeys(deleted))
    (await admin.alter_client_quotas([alteration])).all()


async def describe_credentials(
    admin: AioAdminClient, user: str | None
) -> dict[str, UserScramCredentialsDescription]:
    """Returns the credentials of a user, or of all; nothing for a user who has none."""
    described = await admin.describe_user_scram_credentials([user] if user else None)
    if user and described.errors.get(user) == KafkaError.RESOURCE_NOT_FOUND:
        return {}
    return described.all()


async def alter_credentials(
    admin: AioAdminClient, user: str, added: Mapping[str, str], deleted: Collection[str]
) -> None:
    """Alters credentials; `added` has `[iterations=4096,]password=...` by mechanism."""
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialDeletion(user, SCRAM_MECHANISMS[name]) for name in deleted
    ]
    for mechanism, text in added.items():
        match = _CREDENTIAL.fullmatch(text)
        if match is None:
            raise CommandError(f"Invalid credential property {mechanism}")
        iterations_text, password = match.groups()
        iterations = (
            DEFAULT_ITERATIONS if iterations_text in (None, "", "-1") else int(iterations_text)
        )
        if iterations < DEFAULT_ITERATIONS:
            raise CommandError(
                f"Iterations {iterations} is less than the minimum {DEFAULT_ITERATIONS} required "
                f"for {mechanism}"
            )
        changes.append(_upsertion(user, mechanism, iterations, password))
    (await admin.alter_user_scram_credentials(changes)).all()


async def set_password(
    admin: AioAdminClient, user: str, mechanism: str, iterations: int, password: str
) -> None:
    """Sets the password of a user for one mechanism."""
    upsertion = _upsertion(user, mechanism, iterations, password)
    (await admin.alter_user_scram_credentials([upsertion])).all()


def _upsertion(
    user: str, mechanism: str, iterations: int, password: str
) -> UserScramCredentialUpsertion:
    credential = ScramCredentialInfo(SCRAM_MECHANISMS[mechanism], iterations)
    return UserScramCredentialUpsertion(user, credential, password.encode())


def _rate(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandError(f"Cannot parse quota configuration value for {name}: {text}") from None
