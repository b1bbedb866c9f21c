"""Configs of topics, brokers, groups and client metrics: describe, replace, alter one by one."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas.client.admin.model import AlterConfigOpType, ConfigSource, ResourceType, as_enum
from barnabas.client.admin.requests import UNSET, AdminRequests, Exchange, require_list
from barnabas.client.admin.results import Results, error_of, raise_on_error
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, fail
from barnabas.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from barnabas.wire.messages.configs import IncrementalAlterableConfig as IncrementalConfig
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsResource as IncrementalConfigsResource,
)
from barnabas.wire.schema import Message

V = TypeVar("V")

_WIRE_TYPE_OF_GROUPS = 32
"""The type of groups among resources with configs; it is another number in ACLs."""

_TYPES_OF_ONE_BROKER = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


@dataclass(slots=True, eq=False, repr=False)
class ConfigEntry:
    """A config and the source of its value.

    `source` is a number of ConfigSource. `synonyms` has the configs that it falls back on by
    name; `sources` has every source of a value, the effective one first.
    """

    name: str
    value: str | None
    source: ConfigSource | int = ConfigSource.UNKNOWN_CONFIG
    is_read_only: bool = False
    is_default: bool = False
    is_sensitive: bool = False
    is_synonym: bool = False
    synonyms: dict[str, "ConfigEntry"] = field(default_factory=dict)
    incremental_operation: AlterConfigOpType | None = None
    sources: list["ConfigEntry"] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"ConfigEntry({self})"

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@functools.total_ordering
class ConfigResource:
    """A resource that has configs, and the configs to set.

    The broker with the name "" stands for all brokers of the cluster.
    """

    Type = ResourceType

    __slots__ = (
        "configs",
        "error",
        "incremental_configs",
        "name",
        "restype",
        "restype_int",
        "set_config_dict",
    )

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: dict[str, str] | None = None,
        described_configs: dict[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: list[ConfigEntry] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("a resource needs a name")
        self.restype = as_enum(restype, ResourceType)
        self.restype_int = int(self.restype.value)
        self.name = name
        self.set_config_dict = dict(set_config or {})
        self.incremental_configs = list(incremental_configs or [])
        self.configs = described_configs
        self.error = error

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Sets a config for `alter_configs`, which replaces all configs of the resource."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Adds a change for `incremental_alter_configs`, which leaves other configs alone."""
        self.incremental_configs.append(config_entry)

    def _key(self) -> tuple[ResourceType, str]:
        return self.restype, self.name

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ConfigResource) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, ConfigResource) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.set_config_dict)

    def __repr__(self) -> str:
        error = f",{self.error!r}" if self.error is not None else ""
        return f"ConfigResource({self.restype},{self.name}{error})"


def describe_configs(
    admin: AdminRequests,
    resources: list[ConfigResource],
    *,
    request_timeout: float = UNSET,
    broker: int = -1,
) -> Coroutine[Any, Any, Results[ConfigResource, dict[str, ConfigEntry]]]:
    """Returns all configs of resources, by resource: a dict of `ConfigEntry` by name.

    The configs of a broker are requested from that broker itself, unless `broker` names another.
    """
    require_list("resources", resources, ConfigResource)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[ConfigResource]
    ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=_wire_type(resource.restype),
                    resource_name=resource.name,
                    configuration_keys=None,
                )
                for resource in batch
            ],
            include_synonyms=True,
        )
        response = await admin.send(request, node, deadline=deadline)
        return {
            _resource_in(result): error_of(result)
            or {entry.name: _entry_from(entry) for entry in result.configs}
            for result in response.results
        }

    return _route(admin, resources, exchange, broker, deadline)


def alter_configs(
    admin: AdminRequests,
    resources: list[ConfigResource],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    broker: int = -1,
) -> Coroutine[Any, Any, Results[ConfigResource, None]]:
    """Replaces all configs of resources; results are by resource.

    A config that is not in `set_config` returns to its default, so use
    `incremental_alter_configs` unless you set all of them.
    """
    require_list("resources", resources, ConfigResource)
    by_resource = {
        resource: AlterConfigsResource(
            resource_type=_wire_type(resource.restype),
            resource_name=resource.name,
            configs=[
                AlterableConfig(name=name, value=str(value))
                for name, value in resource.set_config_dict.items()
            ],
        )
        for resource in resources
    }

    def request(batch: list[ConfigResource]) -> Message:
        altered = [by_resource[resource] for resource in batch]
        return AlterConfigsRequest(resources=altered, validate_only=validate_only)

    return _alter(admin, resources, request, broker, admin.deadline(request_timeout))


def incremental_alter_configs(
    admin: AdminRequests,
    resources: list[ConfigResource],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    broker: int = -1,
) -> Coroutine[Any, Any, Results[ConfigResource, None]]:
    """Sets, deletes, appends to or subtracts from single configs; results are by resource.

    The changes are the `incremental_configs` of each resource; other configs stay as they are.
    """
    require_list("resources", resources, ConfigResource)
    by_resource = {
        resource: IncrementalConfigsResource(
            resource_type=_wire_type(resource.restype),
            resource_name=resource.name,
            configs=_alterations(resource),
        )
        for resource in resources
    }

    def request(batch: list[ConfigResource]) -> Message:
        altered = [by_resource[resource] for resource in batch]
        return IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)

    return _alter(admin, resources, request, broker, admin.deadline(request_timeout))


def _alter(
    admin: AdminRequests,
    resources: list[ConfigResource],
    request: Callable[[list[ConfigResource]], Message],
    broker: int,
    deadline: Deadline,
) -> Coroutine[Any, Any, Results[ConfigResource, None]]:
    async def exchange(
        node: int | None, batch: list[ConfigResource]
    ) -> Mapping[ConfigResource, KafkaError | None]:
        response = await admin.send(request(batch), node, deadline=deadline)
        return {_resource_in(result): error_of(result) for result in response.responses}

    return _route(admin, resources, exchange, None if admin.has_controllers else broker, deadline)


def list_config_resources(
    admin: AdminRequests,
    types: Iterable[ResourceType | str | int] = (),
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, list[ConfigResource]]:
    """Returns the resources of these types, or of all types, that can have configs."""
    kinds = [_wire_type(as_enum(kind, ResourceType)) for kind in types]
    request = ListConfigResourcesRequest(resource_types=kinds)
    deadline = admin.deadline(request_timeout)

    async def list_resources() -> list[ConfigResource]:
        response = await admin.send(request, deadline=deadline)
        raise_on_error(response)
        return [_resource_in(resource) for resource in response.config_resources]

    return list_resources()


async def _route(
    admin: AdminRequests,
    resources: list[ConfigResource],
    exchange: Exchange[ConfigResource, V],
    broker: int | None,
    deadline: Deadline,
) -> Results[ConfigResource, V]:
    """Sends resources to a broker, or with -1 each resource to its own broker."""
    brokers = {
        resource: broker if broker is None or broker >= 0 else _broker_of(resource)
        for resource in resources
    }
    return await admin.route_to_brokers(brokers, exchange, deadline)


def _broker_of(resource: ConfigResource) -> int | None:
    """Returns the broker that has the configs of the resource, or None if any broker has."""
    if resource.restype not in _TYPES_OF_ONE_BROKER or not resource.name:
        return None
    try:
        return int(resource.name)
    except ValueError:
        fail(KafkaError._INVALID_ARG, f"{resource}: a broker's name is its id, a number")


def _wire_type(kind: ResourceType) -> int:
    return _WIRE_TYPE_OF_GROUPS if kind is ResourceType.GROUP else int(kind.value)


def _resource_in(result: Any) -> ConfigResource:
    kind = result.resource_type
    restype = ResourceType.GROUP if kind == _WIRE_TYPE_OF_GROUPS else ResourceType(kind)
    return ConfigResource(restype, result.resource_name)


def _entry_from(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    sources = [
        ConfigEntry(synonym.name, synonym.value, synonym.source, is_synonym=True)
        for synonym in entry.synonyms
    ]
    return ConfigEntry(
        entry.name,
        entry.value,
        entry.config_source,
        is_read_only=entry.read_only,
        is_default=entry.config_source == ConfigSource.DEFAULT_CONFIG.value,
        is_sensitive=entry.is_sensitive,
        synonyms={source.name: source for source in sources},
        sources=sources,
    )


def _alterations(resource: ConfigResource) -> list[IncrementalConfig]:
    if not resource.incremental_configs:
        raise ValueError(f"{resource}: incremental_configs is empty")
    return [_alteration(resource, entry) for entry in resource.incremental_configs]


def _alteration(resource: ConfigResource, entry: ConfigEntry) -> IncrementalConfig:
    operation = entry.incremental_operation
    if not isinstance(operation, AlterConfigOpType):
        raise TypeError(f"{resource}: {entry.name} needs an incremental_operation")
    is_deleted = operation is AlterConfigOpType.DELETE
    if entry.value is None and not is_deleted:
        raise TypeError(f"{resource}: {entry.name} needs a value")
    return IncrementalConfig(
        name=entry.name,
        config_operation=operation.value,
        value=None if is_deleted else str(entry.value),
    )
