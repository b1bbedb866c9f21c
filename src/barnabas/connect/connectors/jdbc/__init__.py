"""Tables of PostgreSQL and SQLite, with the settings of Confluent's JDBC connectors.

Rows are read and written as Arrow, through ADBC. See `source.py` and `sink.py`.
"""

from barnabas.connect.connectors.jdbc.sink import JdbcSink
from barnabas.connect.connectors.jdbc.source import JdbcSource

__all__ = ["JdbcSink", "JdbcSource"]
