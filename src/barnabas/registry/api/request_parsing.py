"""Reads the path, query and body of requests, and rejects values of the wrong type."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request

from barnabas.registry import errors
from barnabas.registry.definitions import DocumentError, parse_json
from barnabas.registry.instance import RegistryInstance
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import is_valid_subject, normalize_subject, qualify_reference

MAX_BODY_BYTES = 16 * 2**20
BODY_TIMEOUT_S = 30
_TOO_LARGE = HTTPException(413, f"A body may have at most {MAX_BODY_BYTES} bytes")
_CONTENT_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)
_MAX_NUMBER = 2**31 - 1


def instance_of(request: Request) -> RegistryInstance:
    instance: RegistryInstance = request.app.state.instance
    return instance


def state_of(request: Request) -> RegistryState:
    return instance_of(request).state


async def read_content(request: Request) -> bytes:
    """Returns the body, also repeatedly. Raises HTTP 413 if it is too large, 408 if late."""
    cached: bytes | None = getattr(request.state, "content", None)
    if cached is not None:
        return cached
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
        raise _TOO_LARGE
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    raise _TOO_LARGE
    except TimeoutError:
        raise HTTPException(408) from None
    request.state.content = bytes(content)
    return bytes(content)


async def read_body(request: Request) -> Mapping[str, Any]:
    """Returns the JSON object in the body. Raises HTTP 400, 413 or 415, or RegistryError 422."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type and content_type not in _CONTENT_TYPES:
        raise HTTPException(415)
    content = await read_content(request)
    if not content.strip():
        raise errors.RegistryError(422, "The request needs a body, and it is empty")
    try:
        document = parse_json(content)
    except DocumentError as error:
        raise HTTPException(400, f"The body is {error}") from None
    if not isinstance(document, dict):
        raise HTTPException(400, "The body has to be a JSON object")
    return document


def subject_of(request: Request) -> str:
    """Returns the qualified name of the subject in the path, with its alias resolved."""
    return resolve_alias(state_of(request), unquote(request.path_params["subject"]))


def resolve_alias(state: RegistryState, subject: str) -> str:
    subject = normalize_subject(subject)
    config = state.configs.get(subject)
    return (
        qualify_reference(subject, config.alias) if config is not None and config.alias else subject
    )


def scope_of(request: Request) -> str | None:
    """Returns the scope of a config or mode: a subject, a context (`:.name:`), or None for all."""
    name = request.path_params.get("subject")
    return None if name is None else normalize_subject(unquote(name)) or None


def scope_to_change(request: Request) -> str | None:
    """Returns the scope. Raises RegistryError 42208 if it is not a valid subject."""
    scope = scope_of(request)
    if scope is not None and not is_valid_subject(scope):
        raise errors.invalid_subject(scope)
    return scope


def path_number(request: Request, name: str) -> int:
    """Raises HTTP 404 if it is not a number."""
    try:
        return _number(request.path_params[name])
    except ValueError:
        raise HTTPException(404) from None


def query_flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def query_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if not text:
        return default
    try:
        return _number(text)
    except ValueError:
        raise HTTPException(404) from None


def text_field(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise HTTPException(400, f"{name}: a string is expected, not {value!r:.100}")
    return value


def number_field(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MAX_NUMBER:
        raise HTTPException(400, f"{name}: a whole number is expected, not {value!r:.100}")
    return value


def _number(text: str) -> int:
    number = int(text)
    if abs(number) > _MAX_NUMBER or "_" in text:  # which int() accepts
        raise ValueError(text)
    return number
