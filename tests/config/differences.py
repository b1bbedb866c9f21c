"""Where our settings differ from Kafka's on purpose."""

DYNAMIC_HERE_ALONE = frozenset({"num.partitions"})
"""What may be changed at run time, though Kafka refuses it."""
