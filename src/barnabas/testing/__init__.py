"""A real broker inside your test process, which is removed when the test ends.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Nothing is imported before it is used, because every project that has Barnabas installed loads the
pytest plugin of this package.
"""

from typing import TYPE_CHECKING

from barnabas.lazy import lazy_getattr

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster
    from barnabas.testing.requests import BrokerError
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "barnabas.testing.broker": ("Broker",),
            "barnabas.testing.cluster": ("Cluster",),
            "barnabas.testing.requests": ("BrokerError",),
        },
    )

__all__ = ["Broker", "BrokerError", "Cluster"]
