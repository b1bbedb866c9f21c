"""What a transform does to a record does not depend on the records around it."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.connect.transforms.applying import (
    applied,
    batch_of,
    described,
    json_converter,
    normalized,
    records_of,
)
from tests.connect.transforms.cases import PREFIX, Case
from tests.connect.transforms.random_cases import SETTINGS, random_cases

from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins import find_transform

CASES = random_cases(seed=5, count=600)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_batch_is_transformed_as_each_of_its_records_alone(kind: str) -> None:
    for case in (each for each in CASES if each.transform.partition("$")[0] == kind):
        together = normalized(case, applied(case), is_compact=False)
        for record, result in zip(case.records, together, strict=True):
            is_map = '"schema":null' in (record.value or record.key or "")
            alone = replace(case, records=[record])
            (expected,) = normalized(alone, applied(alone), is_compact=False)
            if "error" in expected and (is_map or not (record.value or record.key)):
                assert "error" in result, (case, record)  # it depends on the schema that a null has
            else:
                assert result == expected, (case, record)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_slice_of_a_batch_is_transformed_as_the_batch(kind: str) -> None:
    source = random.Random(8)
    for case in (each for each in CASES if each.transform.partition("$")[0] == kind):
        batch = batch_of(case.records, json_converter(case))
        start = source.randrange(len(batch))
        padded = batch.take(pa.array([0] * start + list(range(len(batch)))))
        assert rows_of(case, padded.slice(start)) == rows_of(case, batch), case


def rows_of(case: Case, batch: ConnectBatch) -> dict[int, Any]:
    transform = find_transform(PREFIX + case.transform)()
    transform.configure(dict(case.settings))
    try:
        transformed = transform.apply(batch)
    except ConnectError as error:
        return dict.fromkeys(range(len(batch)), described(error))
    results: dict[int, Any] = {each.row: described(each.error) for each in transformed.errors}
    for part, rows in transformed.batches:
        results |= zip(rows.to_pylist(), records_of(part, json_converter(case)), strict=True)
    return results
