"""A cluster of scripted brokers, the client that is tested on it, and what its tests wait for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.client.expected_errors import async_expect_error
from tests.client.scripted import ScriptedBroker, metadata_of, settings_of

from barnabas.client.cluster import ClusterClient, Deadline
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.groups import ListGroupsRequest

CERTIFICATES = Path(__file__).parents[2] / "net" / "certificates"
CA = str(CERTIFICATES / "ca.pem")
OURS = str(CERTIFICATES / "client.pem")


@asynccontextmanager
async def a_cluster(
    *brokers: ScriptedBroker, errors: list[KafkaError] | None = None, **settings: Any
) -> AsyncIterator[ClusterClient]:
    """A client of these brokers, whose metadata has all of them."""
    for broker in brokers:
        broker.handlers[ApiKey.METADATA] = lambda request: metadata_of(brokers, request)
        await broker.start()
    on_error = (lambda _: None) if errors is None else errors.append
    cluster = ClusterClient(settings_of(brokers, **settings), on_error)
    try:
        yield cluster
    finally:
        await cluster.close()
        for broker in brokers:
            await broker.stop()


def soon() -> Deadline:
    return Deadline.after(30_000)


async def request_error(cluster: ClusterClient, words: str) -> KafkaError:
    """Returns the error of a request to which no broker responds."""
    failure = await async_expect_error(
        lambda timeout_s: cluster.send_request(
            ListGroupsRequest(), timeout_ms=int(timeout_s * 1000)
        ),
        words,
    )
    return error_in(failure)


def code_of(caught: pytest.ExceptionInfo[KafkaException]) -> int:
    return error_in(caught.value).code()
