"""Checks of settings that need a Spark session: a worker has one, other processes have not.

Without a session nothing is checked here, and the start of the query reports the same errors.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_MAX_CHARACTERS = 500


def running_session() -> SparkSession | None:
    """Returns the session of this process, if it has one."""
    sql = sys.modules.get("pyspark.sql")
    session: SparkSession | None = None if sql is None else sql.SparkSession._instantiatedSession
    if session is None or session.sparkContext._jsc is None:
        return None
    from barnabas.spark.runtime.query_handle import activate

    activate(session)
    return session


def parsed_schema(text: str) -> StructType:
    """Raises an error of Spark if the text is no list of columns."""
    from pyspark.sql.types import StructType

    parsed = StructType.fromDDL(text)
    if not isinstance(parsed, StructType) or not parsed.fields:
        raise ValueError(f"{text!r} is not a list of columns such as: id BIGINT, name STRING")
    return parsed


def can_write_stream(session: SparkSession, format_name: str) -> str | None:
    """Returns why Spark has no format of this name, or None."""
    jvm, state = session._jvm, session._jsparkSession.sessionState()
    assert jvm is not None
    sources = getattr(jvm, "org.apache.spark.sql.execution.datasources.DataSource")
    try:
        if state.dataSourceManager().dataSourceExists(format_name):
            return None
        sources.lookupDataSource(format_name, state.conf())
    except Exception as error:
        return reason(error)
    return None


def reason(error: Exception) -> str:
    """Returns what is wrong: of a trace of Python in Spark's message, its last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    text = lines[0]
    if text.startswith("An error occurred while calling") and len(lines) > 1:
        text = lines[1].removeprefix(": ")
    traces = [index for index, line in enumerate(lines) if line.startswith("Traceback")]
    if traces or text.endswith("Traceback (most recent call last):"):
        ends = [line for line in lines if not line.startswith(("at ", "SQLSTATE", "JVM stack"))]
        text = ends[-1]
    return text[:_MAX_CHARACTERS]
