"""Spark's own Kafka connector and ours side by side on the same brokers."""
