"""Bytes to messages and record batches, and back. Knows nothing of brokers, files or sockets."""
