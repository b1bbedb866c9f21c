"""The Spark data source `format("barnabas")`: reads and writes topics, in batches and streams.

Spark discovers it by itself if the package is installed (see `pyspark_barnabas`).
"""
