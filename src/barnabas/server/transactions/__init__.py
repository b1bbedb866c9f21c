"""The brokers' side of transactions: verifying partitions and writing markers."""
