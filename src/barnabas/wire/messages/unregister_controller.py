"""UnregisterController (key 94): forget a controller that will not come back."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, string


class UnregisterControllerRequest(
    Message, api_key=94, versions="0", flexible="0+", listeners="broker controller"
):
    controller_id: int32 = field()


class UnregisterControllerResponse(Message, api_key=94, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
