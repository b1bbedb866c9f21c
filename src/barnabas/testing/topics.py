"""Creating a topic: the request for one, and what a refusal tells the test."""

from collections.abc import Mapping

from barnabas.testing.errors import BrokerError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TIMEOUT_MS = 15_000


def creation(
    name: str, partitions: int, copies: int, config: Mapping[str, object] | None
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=copies,
        configs=[
            CreatableTopicConfig(name=key, value=as_text(value))
            for key, value in (config or {}).items()
        ],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


def require_created(response: CreateTopicsResponse) -> None:
    for result in response.topics:
        if result.error_code:
            code = ErrorCode.of(result.error_code)
            raise BrokerError(f"Topic {result.name}: {code.name}: {result.error_message}")


def as_text(value: object) -> str:
    """A setting as server.properties has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
