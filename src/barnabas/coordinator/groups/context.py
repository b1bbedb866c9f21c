"""What deciding about groups needs besides the request and the state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from barnabas.coordinator.ports import ResolvedSettings
from barnabas.metadata.image import MetadataImage
from barnabas.wire.uuid import random_uuid, to_text


class GroupClient(NamedTuple):
    """The sender of a request, as groups keep and describe it."""

    client_id: str
    host: str
    """As Kafka writes it: a slash and the address."""
    api_version: int
    may_describe: Callable[[str], bool] | None = None
    """Whether it may know of a topic; None: of all topics."""


class GroupSettings(ResolvedSettings, Protocol):
    """The settings in force, those of groups included."""

    def group(self, group_name: str) -> Mapping[str, Any]:
        """Returns the settings of one group, by their names."""


@dataclass(slots=True, frozen=True)
class GroupContext:
    """The context of every decision, those of timers included."""

    now_ms: int
    settings: GroupSettings
    image: MetadataImage
    random_bytes: Callable[[int], bytes]

    def new_member_id(self) -> str:
        """Returns a random id, as Kafka writes ids."""
        return to_text(random_uuid(self.random_bytes))

    def new_classic_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(bytes=self.random_bytes(16), version=4)}"


@dataclass(slots=True, frozen=True)
class GroupRequestContext(GroupContext):
    """The context of a decision on a request."""

    client: GroupClient
