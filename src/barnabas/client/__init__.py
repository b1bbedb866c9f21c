"""Producer, consumer and admin clients: asyncio at the core, plain facades on top.

The core of each client lives on one event loop. `barnabas.Producer` and its like run theirs on a
thread that all clients of a process share; those of `barnabas.aio` run on the caller's loop.
"""
