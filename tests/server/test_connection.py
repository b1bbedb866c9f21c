"""Frames in, answers out, in order and within bounds."""


from tests.server.harness import Server, on_a_loop

from barnabas.server.call import Call
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def name_the_client(
    request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(resource_name=f"{call.client_id}@{call.host}")]
    )


@on_a_loop
async def test_a_request_is_answered() -> None:
    server = Server({ApiKey.LIST_CONFIG_RESOURCES: name_the_client})
    client = server.connect()
    await client.send((ListConfigResourcesRequest(), 1, 7))
    correlation_id, response = await client.receive(ApiKey.LIST_CONFIG_RESOURCES, 1)
    assert correlation_id == 7
    assert response.config_resources[0].resource_name == "k@10.0.0.1"
