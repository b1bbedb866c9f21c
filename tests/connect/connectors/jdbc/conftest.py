"""Fixtures of databases."""

from tests.connect.connectors.jdbc.databases import database
from tests.connect.postgres_server import postgres_server

__all__ = ["database", "postgres_server"]
