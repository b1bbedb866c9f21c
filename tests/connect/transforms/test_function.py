"""A function of a user is a transform."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from barnabas.connect import ConnectBatch, ConnectSchema, DataError, Transformed, Type, source_batch
from barnabas.connect.converters.converter import RowError
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins import PluginNotLoadedError, find_converter, find_transform

MODULE = __name__
BATCH = source_batch("t", ConnectSchema(Type.STRING), pa.array(["a", "b", "c", "d"]))


def upper(batch: ConnectBatch) -> ConnectBatch:
    return batch.with_value(batch.value_schema, pc.utf8_upper(batch.value))


def without_b(batch: ConnectBatch) -> ConnectBatch:
    return upper(batch.filter(pc.not_equal(batch.value, "b")))


def divided(batch: ConnectBatch) -> list[ConnectBatch]:
    other = replace(batch.slice(2), topic=pa.array(["x", "x"]))
    return [other, batch.take(pa.array([1]))]


def nothing(batch: ConnectBatch) -> list[ConnectBatch]:
    return []


def failing(batch: ConnectBatch) -> Transformed:
    return Transformed([(batch.slice(1), pa.array([1, 2, 3]))], [RowError(0, DataError("bad"))])


def built_anew(batch: ConnectBatch) -> ConnectBatch:
    return source_batch("u", None, pa.array(range(len(batch))))


def shortened(batch: ConnectBatch) -> ConnectBatch:
    return source_batch("u", None, pa.array([1]))


def not_a_batch(batch: ConnectBatch) -> ConnectBatch:
    return [1]  # type: ignore[return-value]


def applied(name: str) -> Transformed:
    transform = find_transform(f"{MODULE}:{name}")()
    transform.configure({})
    return transform.apply(BATCH)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("upper", [(["A", "B", "C", "D"], [0, 1, 2, 3])]),
        ("without_b", [(["A", "C", "D"], [0, 2, 3])]),
        ("divided", [(["c", "d"], [2, 3]), (["b"], [1])]),
        ("nothing", []),
        ("failing", [(["b", "c", "d"], [1, 2, 3])]),
        ("built_anew", [([0, 1, 2, 3], [0, 1, 2, 3])]),
    ],
)
def test_a_function_returns_batches(name: str, expected: list[tuple[list[str], list[int]]]) -> None:
    found = [(batch.value.to_pylist(), rows.to_pylist()) for batch, rows in applied(name).batches]
    assert found == expected


def test_errors_of_rows_are_passed_on() -> None:
    assert [each.row for each in applied("failing").errors] == [0]


def test_rows_that_are_missing_must_be_known() -> None:
    with pytest.raises(ConnectError, match="shortened returned 1 of 4 rows"):
        applied("shortened")


def test_a_function_must_return_batches() -> None:
    with pytest.raises(ConnectError, match="returned int instead of ConnectBatch"):
        applied("not_a_batch")


def test_a_function_is_no_converter() -> None:
    with pytest.raises(PluginNotLoadedError, match="does not implement the Converter interface"):
        find_converter(f"{MODULE}:upper")
