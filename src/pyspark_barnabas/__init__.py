"""Spark looks for packages of such names, and registers their DefaultSource."""

from barnabas.spark.data_source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
