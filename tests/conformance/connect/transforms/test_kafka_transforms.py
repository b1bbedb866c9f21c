"""Kafka's own transforms make of the cases of the unit tests what is recorded for ours."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.brokers import PEERS
from tests.connect.transforms.applying import applied, normalized
from tests.connect.transforms.cases import Case, Record, all_cases
from tests.connect.transforms.random_cases import random_cases
from tests.connect.transforms.record import EXPECTED

PROGRAM = Path(__file__).parent / "ApplyTransforms.java"

pytestmark = pytest.mark.peer


def test_kafka_agrees_with_what_is_recorded() -> None:
    cases = all_cases()
    expected = json.loads(EXPECTED.read_text())
    for case, answer in zip(cases, applied_by_kafka(cases), strict=True):
        if case.differs is None:
            assert answer == expected[case.name], case.name
        else:
            assert answer != expected[case.name], f"{case.name}: Kafka has the same result"


def test_kafka_agrees_on_random_cases() -> None:
    cases = random_cases(seed=11, count=2000)
    for case, answer in zip(cases, applied_by_kafka(cases, is_compact=False), strict=True):
        ours = normalized(case, applied(case), is_compact=False)
        for record, our, kafkas in zip(case.records, ours, answer, strict=True):
            if our != kafkas and is_comparable(our, kafkas, record):
                assert our == kafkas, (case.transform, case.settings, record)


def is_comparable(ours: dict[str, Any], kafkas: dict[str, Any], record: Record) -> bool:
    """Kafka's converter rejects dates without schema and nulls with one; we write both.

    Which one of two errors of a map is found first is not defined.
    """
    if "error" in (kafkas.get("key"), kafkas.get("value")):
        return False
    if "error" not in ours or "error" not in kafkas:
        return True
    is_map = '{"schema":null' in ((record.value or "") + (record.key or ""))
    return not is_map and "NullPointerException" not in kafkas["error"]


def applied_by_kafka(cases: list[Case], *, is_compact: bool = True) -> list[Any]:
    if shutil.which("java") is None or not (PEERS / "kafka").exists():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    directory = subprocess.run(
        [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
    ).stdout.strip()
    answers = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{directory}/libs/*", PROGRAM],
        input="\n".join(json.dumps(case.request()) for case in cases),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = answers.stdout.splitlines()
    return [
        normalized(case, json.loads(line), is_compact=is_compact)
        for case, line in zip(cases, lines, strict=True)
    ]
