"""Reading topics: the options and columns of Spark's own Kafka connector, and more."""
