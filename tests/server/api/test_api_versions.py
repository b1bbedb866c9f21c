"""ApiVersions returns what is served, and rejects clients of another cluster."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.harness import Server, on_a_loop

from barnabas.metadata.features import METADATA_VERSION
from barnabas.server.api import HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.network.routes import RouteTable
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest

TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def ask(version: int, *, has_subscriptions: bool = True, **fields: Any) -> Any:
    if version >= 3:
        fields = {"client_software_name": "librdkafka", "client_software_version": "2.8.0"} | fields
    responses = []

    @on_a_loop
    async def scenario() -> None:
        server = Server()
        server.broker.image.features[METADATA_VERSION] = 25
        server.broker.image.features["group.version"] = 0
        server.broker.image.offset = 42
        server.broker.telemetry.has_subscriptions = has_subscriptions
        controller: Any = SimpleNamespace(quorum=SimpleNamespace(kraft_version=1))
        server.broker.controller = controller
        client = server.connect()
        await client.send((ApiVersionsRequest(**fields), version, 1))
        responses.append((await client.receive(ApiKey.API_VERSIONS, version))[1])
        responses.append(client.connection.software)

    scenario()
    return responses


@pytest.mark.parametrize("version", range(6))
def test_every_served_api_is_advertised_with_its_versions(version: int) -> None:
    response, _ = ask(version)
    assert response.error_code == ErrorCode.NONE
    reported = {ApiKey(a.api_key): (a.min_version, a.max_version) for a in response.api_keys}
    served = {k: (served_versions(k).min, served_versions(k).max) for k in HANDLERS}
    assert reported == served | {ApiKey.PRODUCE: (0, served[ApiKey.PRODUCE][1])}, "see KAFKA-18659"


def test_telemetry_is_advertised_while_there_are_subscriptions() -> None:
    keys = [
        {ApiKey(a.api_key) for a in ask(4, has_subscriptions=has_some)[0].api_keys}
        for has_some in (True, False)
    ]
    assert keys[0] - keys[1] == TELEMETRY
    assert not keys[1] - keys[0]


def test_an_unstable_version_is_not_advertised() -> None:
    response, _ = ask(4)
    reported = {item.api_key: item.max_version for item in response.api_keys}
    assert reported[ApiKey.INIT_PRODUCER_ID] == api(ApiKey.INIT_PRODUCER_ID).versions.max - 1


def test_an_unstable_version_is_not_served() -> None:
    with pytest.raises(ProtocolViolation):
        RouteTable(MetricsRegistry(), HANDLERS).resolve(ApiKey.INIT_PRODUCER_ID << 16 | 6)


def test_features_are_returned_as_supported_and_as_finalized() -> None:
    response, _ = ask(4)
    finalized = [
        (f.name, f.min_version_level, f.max_version_level) for f in response.finalized_features
    ]
    assert finalized == [("kraft.version", 1, 1), (METADATA_VERSION, 25, 25)]
    assert response.finalized_features_epoch == 42
    assert any(feature.min_version == 0 for feature in response.supported_features)


def test_features_that_start_at_level_zero_are_hidden_from_older_clients() -> None:
    response, _ = ask(3)
    assert [feature.name for feature in response.supported_features] == [METADATA_VERSION]


def test_the_clients_software_is_recorded() -> None:
    assert ask(3)[1] == ("librdkafka", "2.8.0")


@pytest.mark.parametrize("name", ["", "-x", "has space", "ends.", "new\nline"])
def test_a_malformed_software_name_is_an_invalid_request(name: str) -> None:
    response, _ = ask(3, client_software_name=name)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("believed", "code"),
    [
        ({"cluster_id": "castle", "node_id": 1}, ErrorCode.NONE),
        ({"cluster_id": None, "node_id": -1}, ErrorCode.NONE),
        ({"cluster_id": "village", "node_id": 1}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"cluster_id": "castle", "node_id": 2}, ErrorCode.REBOOTSTRAP_REQUIRED),
    ],
)
def test_a_client_that_expects_another_cluster_or_node_must_rebootstrap(
    believed: dict[str, Any], code: ErrorCode
) -> None:
    assert ask(5, **believed)[0].error_code == code
