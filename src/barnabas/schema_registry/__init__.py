"""A client of a schema registry, as `confluent_kafka.schema_registry` has it."""
