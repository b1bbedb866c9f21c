"""Reads the path, the query and the body of requests, and rejects values of the wrong type.

Connect responds with 500 to a body that cannot be read, and so does this API: clients know it. The
messages are our own, because Connect's name its Java classes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request

from barnabas.connect.model import Herder, RequestFailedError

MAX_BODY_BYTES: Final = 16 * 2**20
"""Connect has no limit. The settings of a connector are a few kilobytes, and the offsets of a
thousand partitions a hundred."""

BODY_TIMEOUT_S: Final = 30
_TOO_LARGE: Final = f"A body may have at most {MAX_BODY_BYTES} bytes"


class InvalidBodyError(RequestFailedError):
    """The body of a request is not what the request needs."""

    def __init__(self, message: str) -> None:
        super().__init__(500, message)


def herder_of(request: Request) -> Herder:
    herder: Herder = request.app.state.herder
    return herder


def worker_of(request: Request) -> Mapping[str, str]:
    """Returns the settings of the worker."""
    worker: Mapping[str, str] = request.app.state.worker
    return worker


def path_text(request: Request, name: str) -> str:
    return unquote(request.path_params[name])


def path_number(request: Request, name: str) -> int:
    """Raises HTTP 404 if it is not a number."""
    text = request.path_params[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HTTPException(404)
    return int(text)


def query_flag(request: Request, name: str, *, default: bool = False) -> bool:
    """Like Java, takes everything but `true` for false."""
    text = request.query_params.get(name)
    return default if text is None else text.strip().lower() == "true"


# Bodies


async def read_content(request: Request) -> bytes:
    """Returns the body, also repeatedly. Raises HTTP 413 if it is too large, 408 if late."""
    cached: bytes | None = getattr(request.state, "content", None)
    if cached is not None:
        return cached
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
        raise HTTPException(413, _TOO_LARGE)
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    raise HTTPException(413, _TOO_LARGE)
    except TimeoutError:
        raise HTTPException(408) from None
    request.state.content = bytes(content)
    return bytes(content)


async def read_object(request: Request, *, numbers_as_text: bool = False) -> dict[str, Any]:
    """Returns the JSON object in the body. Raises InvalidBodyError."""
    document = parse_json(await read_content(request), numbers_as_text=numbers_as_text)
    if not isinstance(document, dict):
        raise InvalidBodyError(f"The body has to be a JSON object, not {json_type(document)}")
    return document


async def read_settings(request: Request) -> dict[str, str | None]:
    """Returns the settings in the body. Raises InvalidBodyError."""
    return settings_of(await read_object(request, numbers_as_text=True), "")


def settings_of(document: Mapping[str, Any], path: str) -> dict[str, str | None]:
    """Returns the values as text: numbers and booleans may be given without quotes."""
    return {name: _setting_text(value, f"{path}{name}") for name, value in document.items()}


def _setting_text(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return json.dumps(value)
    raise InvalidBodyError(f"The value of {path} has to be a string, not {json_type(value)}")


def parse_json(content: bytes, *, numbers_as_text: bool = False) -> Any:
    """`numbers_as_text` keeps numbers as they were written. Raises InvalidBodyError."""
    if not content.strip():
        raise InvalidBodyError("The request needs a body, and it is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise InvalidBodyError(f"The body is not UTF-8 at byte {error.start}") from None
    readers: dict[str, Any] = {"parse_int": str, "parse_float": str} if numbers_as_text else {}
    try:
        return json.loads(text, parse_constant=_reject_constant, **readers)
    except json.JSONDecodeError as error:
        raise InvalidBodyError(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise InvalidBodyError(f"The body is not JSON: {error}") from None


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "an array"
        case _:
            return "an object"
