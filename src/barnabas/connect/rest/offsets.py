"""/connectors/NAME/offsets: reads, changes and resets positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect.model import RequestFailedError, StoredOffset
from barnabas.connect.rest.forwarding import calls_herder
from barnabas.connect.rest.requests import (
    InvalidBodyError,
    herder_of,
    json_type,
    path_text,
    read_object,
)
from barnabas.connect.rest.responses import json_response


@calls_herder
async def get_offsets(request: Request) -> Response:
    offsets = await herder_of(request).offsets(path_text(request, "connector"))
    return json_response(
        {
            "offsets": [
                {"partition": dict(each.partition), "offset": _position_json(each.offset)}
                for each in offsets
            ]
        }
    )


def _position_json(position: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if position is None else dict(position)


@calls_herder
async def alter_offsets(request: Request) -> Response:
    offsets = offsets_of(await read_object(request))
    if not offsets:
        raise RequestFailedError(
            400, "Partitions / offsets need to be provided for an alter offsets request"
        )
    message = await herder_of(request).alter_offsets(path_text(request, "connector"), offsets)
    return json_response({"message": message})


@calls_herder
async def reset_offsets(request: Request) -> Response:
    message = await herder_of(request).alter_offsets(path_text(request, "connector"), None)
    return json_response({"message": message})


def offsets_of(body: Mapping[str, Any]) -> Sequence[StoredOffset]:
    """Returns the positions in a body. Raises InvalidBodyError."""
    _reject_unknown(body, ("offsets",))
    offsets = body.get("offsets")
    if offsets is None:
        return []
    if not isinstance(offsets, list):
        raise InvalidBodyError(f"offsets has to be an array, not {json_type(offsets)}")
    return [_offset_of(item) for item in offsets]


def _offset_of(item: Any) -> StoredOffset:
    if not isinstance(item, dict):
        raise InvalidBodyError(f"An item of offsets has to be an object, not {json_type(item)}")
    _reject_unknown(item, ("offset", "partition"))
    for name, value in item.items():
        if value is not None and not isinstance(value, dict):
            raise InvalidBodyError(f"{name} has to be an object, not {json_type(value)}")
    partition = item.get("partition")
    if partition is None:
        raise InvalidBodyError("Partition objects cannot be null")
    return StoredOffset(partition, item.get("offset"))


def _reject_unknown(fields: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in fields:
        if name not in known:
            raise InvalidBodyError(f'Unrecognized field "{name}": known are {", ".join(known)}')


ROUTES = [
    Route("/connectors/{connector}/offsets", get_offsets, methods=["GET"]),
    Route("/connectors/{connector}/offsets", alter_offsets, methods=["PATCH"]),
    Route("/connectors/{connector}/offsets", reset_offsets, methods=["DELETE"]),
]
