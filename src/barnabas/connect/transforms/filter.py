"""Filter: drops all records that its predicate accepts."""

from __future__ import annotations

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.transforms.transform import Transform, Transformed


class Filter(Transform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def apply(self, batch: ConnectBatch) -> Transformed:
        return Transformed([])
