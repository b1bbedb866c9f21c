"""Creating and deleting a topic: the requests, and what a refusal tells the test."""

from collections.abc import Mapping

from barnabas.testing.errors import BrokerError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
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


def deletion(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)


def require_done(response: CreateTopicsResponse | DeleteTopicsResponse) -> None:
    results = response.topics if isinstance(response, CreateTopicsResponse) else response.responses
    for result in results:
        if result.error_code:
            code = ErrorCode.of(result.error_code)
            raise BrokerError(f"Topic {result.name}: {code.name}: {result.error_message}")


def as_text(value: object) -> str:
    """A setting as server.properties has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
