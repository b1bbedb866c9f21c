"""Transforms and predicates make of records what Kafka's make of them."""

import json
from collections import defaultdict
from typing import Any

import pytest
from tests.connect.transforms.applying import applied, normalized
from tests.connect.transforms.cases import Case, all_cases
from tests.connect.transforms.record import EXPECTED


def cases_by_transform() -> dict[str, list[Case]]:
    grouped: dict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        grouped[case.transform].append(case)
    return grouped


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(EXPECTED.read_text())
    return recorded


@pytest.mark.parametrize("transform", cases_by_transform())
def test_records_become_what_kafka_makes_of_them(transform: str, expected: dict[str, Any]) -> None:
    for case in cases_by_transform()[transform]:
        assert normalized(case, applied(case)) == expected[case.name], case.name


def test_each_case_is_recorded(expected: dict[str, Any]) -> None:
    assert [case.name for case in all_cases()] == list(expected)
