"""Intended differences between our settings and Kafka's."""

DYNAMIC_ONLY_HERE = frozenset({"num.partitions"})
"""Settings that can change at run time here and not in Kafka."""
