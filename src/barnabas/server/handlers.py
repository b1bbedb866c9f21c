"""The handlers of the APIs that a broker or a controller serves."""

import importlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from barnabas.wire.apis import ApiKey, api
from barnabas.wire.schema import VersionRange

Handler = Callable[[Any, Any], Coroutine[Any, None, Any]]
"""`async def handle(request, context: RequestContext) -> response`; None if none is expected.

It may await only futures. Views of the request (`records`) are valid until its first await.
"""


class ApiHandlers(Mapping[ApiKey, Handler]):
    """Functions of a package's modules, which are imported on first use.

    A handler is named by `module`, for its function `handle`, or by `module.function`.
    """

    __slots__ = ("_names", "_package")

    def __init__(self, package: str, names: Mapping[ApiKey, str]) -> None:
        self._package = package
        self._names = names

    def __getitem__(self, key: ApiKey) -> Handler:
        module, _, function = self._names[key].partition(".")
        handler: Handler = getattr(
            importlib.import_module(f"{self._package}.{module}"), function or "handle"
        )
        return handler

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._names)

    __hash__ = object.__hash__  # it is immutable

    def __len__(self) -> int:
        return len(self._names)


def served_versions(key: ApiKey) -> VersionRange:
    """Returns the declared versions; like Kafka, without a last one that is not stable yet."""
    return api(key).stable_versions
