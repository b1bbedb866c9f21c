"""Test data, with the settings of Confluent's DatagenConnector.

Each of `tasks.max` tasks has a partition of its own. Rows depend only on `random.seed`, the task
and the number of the row: a restarted connector continues with the rows that it would have written.
`max.interval` is the longest pause between two rows; a read returns as many rows as are due. With
0 there is no pause.
"""

from barnabas.connect.connectors.datagen.source import Datagen

__all__ = ["Datagen"]
