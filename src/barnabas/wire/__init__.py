"""Bytes to messages and record batches, and back. Knows nothing of brokers, files or sockets.

`messages` declares what is sent, `codec` compiles it, `apis` and `headers` say what goes with
what, `records` reads and writes the batches that messages carry.
"""
