"""Objects to framed bytes and back, by a registry's schemas.

`barnabas.schema_registry.avro`, `.json_schema` and `.protobuf` are where their users find them.
"""
