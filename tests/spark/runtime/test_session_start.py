"""A session that cannot be started."""

import subprocess
import sys

PROGRAM = """
from barnabas.spark.runtime.errors import QueryError
from barnabas.spark.runtime.session import ServiceSession

try:
    ServiceSession({"spark.master": "local[1]", "spark.driver.memory": "100m"}, app_name="tests")()
except QueryError as error:
    print(error)
"""


def test_the_error_says_why_the_jvm_has_rejected_the_settings() -> None:
    """The text of an exception of Java is read from the JVM, which ends then."""
    command = [sys.executable, "-c", PROGRAM]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("Spark does not start: ")
    assert "heap size using the --driver-memory option" in completed.stdout
