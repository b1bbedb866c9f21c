"""The client of a schema registry, its models and its HTTP requests.

Users import it from `barnabas.schema_registry`.
"""
