"""Topics as DataFrames: `format("barnabas")`, read and written, in batches and streams.

Spark finds it by itself where the package is installed (see `pyspark_barnabas`).
"""
