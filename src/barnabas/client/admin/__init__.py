"""The admin client: `AioAdminClient` is the core, `AdminClient` the same with futures.

Every client deals in some of the values here; the calls are loaded with the admin clients alone.
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
