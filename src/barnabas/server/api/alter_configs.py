"""AlterConfigs (key 33): replace all settings of a resource; decided by the controller.

v1 throttles after answering. IncrementalAlterConfigs is what clients use since Kafka 2.3.
"""

from barnabas.server.call import Call
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


async def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    response: AlterConfigsResponse = await call.broker.controller.handle(request)
    return response
