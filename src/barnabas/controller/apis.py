"""The module that decides on each API. Modules are imported at their first request."""

from functools import cache
from importlib import import_module
from typing import Protocol

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Message

DECIDERS = {
    ApiKey.CREATE_TOPICS: "create_topics",
    ApiKey.DELETE_TOPICS: "delete_topics",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.ALTER_CONFIGS: "alter_configs",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    ApiKey.ELECT_LEADERS: "elect_leaders",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    ApiKey.UPDATE_FEATURES: "update_features",
    ApiKey.BROKER_REGISTRATION: "broker_registration",
    ApiKey.BROKER_HEARTBEAT: "broker_heartbeat",
    ApiKey.UNREGISTER_BROKER: "unregister_broker",
    ApiKey.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "assign_replicas_to_dirs",
    ApiKey.ALTER_PARTITION: "alter_partition",
    ApiKey.CONTROLLER_REGISTRATION: "controller_registration",
}


class Decider(Protocol):
    """The interface of such a module; see `barnabas.controller.context`."""

    def decide(
        self, request: Message, image: MetadataImage, context: ControllerContext, /
    ) -> ControllerDecision: ...


@cache
def load_decider(api_key: int) -> Decider:
    """Returns the module for an API. Raises KeyError if the controller does not decide on it."""
    return import_module(f"barnabas.controller.{DECIDERS[ApiKey(api_key)]}")
