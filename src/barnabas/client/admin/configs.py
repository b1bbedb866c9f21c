"""Settings of topics, brokers, groups and client metrics: describe, replace, change one by one."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.calls import (
    UNSET,
    Calls,
    Results,
    outcome_of,
    raise_failure,
    require_list,
)
from barnabas.client.admin.enums import AlterConfigOpType, ConfigSource, ResourceType, as_enum
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, fail, told_by_broker
from barnabas.wire.messages import alter_configs, incremental_alter_configs
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.schema import Message

_GROUP_ON_THE_WIRE = 32
"""Groups have one number among resources with settings and another in access rules."""

_OF_ONE_BROKER = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


@dataclass(slots=True, eq=False, repr=False)
class ConfigEntry:
    """A setting and where its value comes from.

    `source` is a number of ConfigSource. `synonyms` has the settings that it falls back on by
    their names; `sources` every place that gives it a value, the one that counts first.
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
    """What settings belong to, and those to set.

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
        """For `alter_configs`, which replaces all settings of the resource."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """For `incremental_alter_configs`, which leaves the others as they are."""
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


class ConfigCalls(Calls):
    def describe_configs(
        self,
        resources: list[ConfigResource],
        *,
        request_timeout: float = UNSET,
        broker: int = -1,
    ) -> Coroutine[Any, Any, Results[ConfigResource, dict[str, ConfigEntry]]]:
        """All settings of resources; those of a broker are told by itself."""
        require_list("resources", resources, ConfigResource)
        return self._describe_configs(resources, broker, self._deadline(request_timeout))

    async def _describe_configs(
        self, resources: list[ConfigResource], broker: int, deadline: Deadline
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        async def exchange(
            node: int | None, asked: list[ConfigResource]
        ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=_on_the_wire(resource),
                        resource_name=resource.name,
                        configuration_keys=None,
                    )
                    for resource in asked
                ],
                include_synonyms=True,
            )
            response = await self._routes.ask(request, node, deadline=deadline)
            return {
                _named(result): told_by_broker(result.error_code, result.error_message)
                if result.error_code
                else {each.name: _described(each) for each in result.configs}
                for result in response.results
            }

        brokers = {resource: _responsible(resource, broker) for resource in resources}
        return Results(await self._routes.by_broker(brokers, exchange, deadline))

    def alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        broker: int = -1,
    ) -> Coroutine[Any, Any, Results[ConfigResource, None]]:
        """Replace all settings of resources by those of `set_config`."""
        require_list("resources", resources, ConfigResource)
        by_resource = {
            resource: alter_configs.AlterConfigsResource(
                resource_type=_on_the_wire(resource),
                resource_name=resource.name,
                configs=[
                    alter_configs.AlterableConfig(name=name, value=str(value))
                    for name, value in resource.set_config_dict.items()
                ],
            )
            for resource in resources
        }

        def request(asked: list[ConfigResource]) -> Message:
            altered = [by_resource[resource] for resource in asked]
            return alter_configs.AlterConfigsRequest(resources=altered, validate_only=validate_only)

        return self._alter(resources, request, broker, self._deadline(request_timeout))

    def incremental_alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        broker: int = -1,
    ) -> Coroutine[Any, Any, Results[ConfigResource, None]]:
        """Set, delete, append to or subtract from single settings (`incremental_configs`)."""
        require_list("resources", resources, ConfigResource)
        by_resource = {
            resource: incremental_alter_configs.AlterConfigsResource(
                resource_type=_on_the_wire(resource),
                resource_name=resource.name,
                configs=_alterations(resource),
            )
            for resource in resources
        }

        def request(asked: list[ConfigResource]) -> Message:
            altered = [by_resource[resource] for resource in asked]
            return incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=altered, validate_only=validate_only
            )

        return self._alter(resources, request, broker, self._deadline(request_timeout))

    async def _alter(
        self,
        resources: list[ConfigResource],
        request: Callable[[list[ConfigResource]], Message],
        broker: int,
        deadline: Deadline,
    ) -> Results[ConfigResource, None]:
        async def exchange(
            node: int | None, asked: list[ConfigResource]
        ) -> Mapping[ConfigResource, KafkaError | None]:
            response = await self._routes.ask(request(asked), node, deadline=deadline)
            return {
                _named(result): outcome_of(result.error_code, result.error_message)
                for result in response.responses
            }

        brokers = {
            resource: None if self._routes.has_controllers else _responsible(resource, broker)
            for resource in resources
        }
        return Results(await self._routes.by_broker(brokers, exchange, deadline))

    def list_config_resources(
        self,
        types: Iterable[ResourceType | str | int] = (),
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, list[ConfigResource]]:
        """The resources of these types, or of all, that can have settings of their own."""
        kinds = [_type_on_the_wire(as_enum(each, ResourceType)) for each in types]
        return self._list_config_resources(kinds, self._deadline(request_timeout))

    async def _list_config_resources(
        self, kinds: list[int], deadline: Deadline
    ) -> list[ConfigResource]:
        request = ListConfigResourcesRequest(resource_types=kinds)
        response = await self._routes.ask(request, deadline=deadline)
        raise_failure(response.error_code)
        return [_named(resource) for resource in response.config_resources]


def _responsible(resource: ConfigResource, broker: int) -> int | None:
    """The broker to ask; most can be asked of any."""
    if broker >= 0:
        return broker
    if resource.restype not in _OF_ONE_BROKER or not resource.name:
        return None
    try:
        return int(resource.name)
    except ValueError:
        fail(KafkaError._INVALID_ARG, f"{resource}: a broker's name is its id, a number")


def _on_the_wire(resource: ConfigResource) -> int:
    return _type_on_the_wire(resource.restype)


def _type_on_the_wire(kind: ResourceType) -> int:
    return _GROUP_ON_THE_WIRE if kind is ResourceType.GROUP else int(kind.value)


def _named(result: Any) -> ConfigResource:
    kind = result.resource_type
    restype = ResourceType.GROUP if kind == _GROUP_ON_THE_WIRE else ResourceType(kind)
    return ConfigResource(restype, result.resource_name)


def _described(told: DescribeConfigsResourceResult) -> ConfigEntry:
    sources = [
        ConfigEntry(each.name, each.value, each.source, is_synonym=True) for each in told.synonyms
    ]
    return ConfigEntry(
        told.name,
        told.value,
        told.config_source,
        is_read_only=told.read_only,
        is_default=told.config_source == ConfigSource.DEFAULT_CONFIG.value,
        is_sensitive=told.is_sensitive,
        synonyms={source.name: source for source in sources},
        sources=sources,
    )


def _alterations(resource: ConfigResource) -> list[incremental_alter_configs.AlterableConfig]:
    if not resource.incremental_configs:
        raise ValueError(f"{resource}: incremental_configs holds nothing to alter")
    return [_alteration(resource, entry) for entry in resource.incremental_configs]


def _alteration(
    resource: ConfigResource, entry: ConfigEntry
) -> incremental_alter_configs.AlterableConfig:
    operation = entry.incremental_operation
    if not isinstance(operation, AlterConfigOpType):
        raise TypeError(f"{resource}: {entry.name} needs an incremental_operation")
    is_deleted = operation is AlterConfigOpType.DELETE
    if entry.value is None and not is_deleted:
        raise TypeError(f"{resource}: {entry.name} needs a value")
    return incremental_alter_configs.AlterableConfig(
        name=entry.name,
        config_operation=operation.value,
        value=None if is_deleted else str(entry.value),
    )
