"""Barnabas and the real Kafka side by side: `make bench`."""
