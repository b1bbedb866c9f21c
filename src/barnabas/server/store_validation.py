"""Changes of this broker's settings that the controller cannot check.

Files of key and trust stores are on this broker, and so are the certificates that the new ones must
match, and the values that others refer to (config providers).

Only for clients that may change them: the errors tell which files exist. The controller denies the
others.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.config import ConfigResourceType
from barnabas.config.changes import apply_operation, find_setting
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.providers import has_reference
from barnabas.net.listener_config import TlsConfigError
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import AlterConfigsResource, IncrementalAlterConfigsResource


class StoreValidator(Protocol):
    """Knows the current stores of all listeners."""

    async def validate(self, values: Mapping[str, Any]) -> None:
        """Raises TlsConfigError if they may not become those of the settings in `values`."""


async def find_store_error(
    resource: AlterConfigsResource | IncrementalAlterConfigsResource, context: RequestContext
) -> KafkaError | None:
    """Returns why the settings of this broker cannot change like this, or None if they can."""
    broker = context.broker
    if (
        broker.store_validator is None
        or resource.resource_type != ConfigResourceType.BROKER
        or not resource.resource_name
        or not context.is_allowed(AclOperation.ALTER_CONFIGS, CLUSTER, is_audited=False)
    ):
        return None
    try:
        own = _own_settings(resource, context)
        if any(map(has_reference, own.values())):  # the controller cannot resolve them
            broker.resolver.validate_broker(own, broker_id=broker.node_id)
        await broker.store_validator.validate(broker.resolver.broker_values(own))
    except InvalidConfigRequest as error:
        return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
    except InvalidConfig:
        return None  # the controller says what is wrong
    except TlsConfigError as error:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    return None


def _own_settings(
    resource: AlterConfigsResource | IncrementalAlterConfigsResource, context: RequestContext
) -> dict[str, str]:
    """Returns the broker's own dynamic settings as they would be after the change."""
    if isinstance(resource, AlterConfigsResource):
        return {item.name: item.value for item in resource.configs if item.value is not None}
    own: dict[str, str | None] = dict(
        context.broker.resolver.overrides(ConfigResourceType.BROKER, resource.resource_name)
    )
    for change in resource.configs:
        setting = find_setting(ConfigResourceType.BROKER, change.name)
        own[change.name] = apply_operation(
            setting, own.get(change.name), change.config_operation, change.value
        )
    return {name: text for name, text in own.items() if text is not None}
