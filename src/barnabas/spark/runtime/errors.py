"""Errors of queries and their work items."""


class QueryError(Exception):
    """A query cannot start, or has ended by itself. The message says why."""


class SparkDiedError(QueryError):
    """Spark's JVM or session has ended. The next start makes a new one."""


class StopTimeoutError(QueryError):
    """A query did not stop in time, and may still run."""


class PlanFailedError(QueryError):
    """The planner of a work query has raised; raised in Spark, where the planner is not."""


class WorkerLostError(Exception):
    """The Python worker or the executor of a work item died each time that it ran the item."""


class WorkItemError(Exception):
    """Takes the part of an item's error or result that cannot be pickled. It has its text."""
