"""The admin clients: `AioAdminClient` for asyncio, and `AdminClient`, which returns futures.

Producers and consumers use some of the values here, so the calls are imported with the admin
clients alone.
"""

from typing import TYPE_CHECKING

from barnabas.lazy import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client.admin.aio import AioAdminClient
    from barnabas.client.admin.client import AdminClient
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "barnabas.client.admin.aio": ("AioAdminClient",),
            "barnabas.client.admin.client": ("AdminClient",),
        },
    )

__all__ = ["AdminClient", "AioAdminClient"]
