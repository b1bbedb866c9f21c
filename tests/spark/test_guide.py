"""docs/spark.md names everything that a user can set."""

import re
from pathlib import Path

from barnabas.spark.session import settings
from barnabas.spark.sink.options import OPTIONS
from barnabas.spark.source.option_names import OPTION_NAMES

GUIDE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_guide_names_every_option_and_setting() -> None:
    named = set(re.findall(r"`([A-Za-z.]+)`", GUIDE.read_text()))
    assert not {*OPTION_NAMES, *OPTIONS, *settings()} - named
