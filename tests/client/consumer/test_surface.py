"""`Consumer` and `AioConsumer` have the same methods with the same parameters."""

import inspect
from typing import Any

import pytest

from barnabas.client.consumer import AioConsumer, Consumer
from barnabas.client.consumer._poller import Poller

INHERITED = {name for name in dir(Poller) if not name.startswith("_")} | {"poll"}
"""Methods of the compiled base, whose signatures cannot be inspected."""


def methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: Any) -> list[inspect.Parameter]:
    """Returns the parameters without annotations: callbacks take the class itself."""
    found = inspect.signature(function).parameters.values()
    return [each.replace(annotation=inspect.Parameter.empty) for each in found]


def test_plain_and_asyncio_consumers_have_the_same_methods() -> None:
    assert methods(Consumer) == methods(AioConsumer)


@pytest.mark.parametrize("name", sorted(methods(Consumer) - INHERITED))
def test_plain_and_asyncio_consumers_have_the_same_parameters(name: str) -> None:
    assert parameters(getattr(Consumer, name)) == parameters(getattr(AioConsumer, name))
