"""`offset` and `limit`: a part of a list; of schemas, never more than so many."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request

from barnabas.registry.api.asking import number

T = TypeVar("T")
MOST_SCHEMAS = 1_000


def page(request: Request, items: Sequence[T], most: int | None = None) -> list[T]:
    start = max(0, number(request, "offset", 0))
    limit = number(request, "limit", -1)
    most = len(items) if most is None else most
    return list(items[start : start + (limit if 0 < limit <= most else most)])
