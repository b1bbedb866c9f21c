"""The broker without sockets that the data plane's handlers are tested on."""

from tests.replication.conftest import idle_loop, new_world, world

__all__ = ["idle_loop", "new_world", "world"]
