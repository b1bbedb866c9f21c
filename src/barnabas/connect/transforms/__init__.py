"""Kafka's single message transforms and predicates, a batch at a time."""
