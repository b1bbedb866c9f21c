"""Serializers and deserializers that use a registry's schemas.

Users import them from `barnabas.schema_registry.avro`, `.json_schema` and `.protobuf`.
"""
