"""A save whose version was decided before is not written, and a warning says so."""

import pytest
from tests.log_records import barnabas_log_lines

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink.commit_decision import TaskTransaction
from barnabas.spark.sink.protocol import TaskReport, WriteJob
from barnabas.spark.sink.writer import EmptyMessage, TaskMessage, log_skipped

SAVE = WriteJob("barnabas-sink-app", "run", 7, "orders", in_order=False)
MICRO_BATCH = WriteJob("barnabas-sink-query", "run", 7, "orders")
WRITTEN = TaskTransaction(0, 5, PreparedTransaction("id", 1, 0))


def report(*, is_decided: bool, transaction: TaskTransaction | None = None) -> TaskReport:
    return TaskReport(0, 0, is_decided, transaction)


def test_a_save_that_no_task_has_written_has_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log_skipped([TaskMessage(SAVE, report(is_decided=True))] * 2)
    (line,) = barnabas_log_lines(caplog)
    assert line.startswith("barnabas-sink-app: version 7 is not written: it, or a later one, was")
    assert "use another txnAppId" in line


@pytest.mark.parametrize(
    "message",
    [
        TaskMessage(SAVE, report(is_decided=False, transaction=WRITTEN)),
        TaskMessage(SAVE, report(is_decided=True, transaction=WRITTEN)),  # it was lost before
        TaskMessage(SAVE, report(is_decided=False)),  # it had no rows
        TaskMessage(MICRO_BATCH, report(is_decided=True)),  # replayed after a failure
        EmptyMessage(0),
    ],
)
def test_other_saves_have_no_warning(
    message: TaskMessage | EmptyMessage, caplog: pytest.LogCaptureFixture
) -> None:
    log_skipped([message])
    assert barnabas_log_lines(caplog) == []
