"""How partitions are divided among the members of a consumer group, on the server (KIP-848)."""
