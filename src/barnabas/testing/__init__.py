"""A broker inside your test: real, in this process, gone when the test ends.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Nothing is imported before it is used: the pytest plugin lives here, and is loaded in every
project that has Barnabas installed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.errors import BrokerError

__all__ = ["Broker", "BrokerError", "Cluster"]

_HOMES = {"Broker": "broker", "BrokerError": "errors", "Cluster": "cluster"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
