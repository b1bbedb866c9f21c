"""Writes `expected.json` again: python -m tests.connect.transforms.record.

Look at the difference, and run `tests/conformance/connect/transforms`: it compares with Kafka.
"""

import json
from pathlib import Path

from tests.connect.transforms.applying import applied, normalized
from tests.connect.transforms.cases import all_cases

EXPECTED = Path(__file__).parent / "expected.json"


def main() -> None:
    answers = {case.name: normalized(case, applied(case)) for case in all_cases()}
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
