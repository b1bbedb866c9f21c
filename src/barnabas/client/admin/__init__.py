"""The admin client: `AioAdminClient` is the core, `AdminClient` the same with futures."""

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.client import AdminClient

__all__ = ["AdminClient", "AioAdminClient"]
