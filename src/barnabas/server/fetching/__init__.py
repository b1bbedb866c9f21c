"""Fetch requests: sessions, reading partitions, and the choice of a replica to read from."""
