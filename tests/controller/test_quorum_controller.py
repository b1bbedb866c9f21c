"""The controller of one node among several: active, standing by, and in between."""

from typing import Any

import pytest
from tests.controller.harness import ControllerHarness, creation, registration

from barnabas.controller import quorum_controller as module
from barnabas.metadata.features import default_levels
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    NoOpRecord,
)


def code(created: Any) -> int:
    value: int = created.topics[0].error_code
    return value


def names(harness: ControllerHarness) -> set[str]:
    return {topic.name for topic in harness.image.topics}


def test_an_inactive_controller_responds_with_not_controller() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        assert not harness.controller.is_active
        assert harness.controller.epoch == -1
        assert code(await harness.handle(creation("orders"))) == ErrorCode.NOT_CONTROLLER
        error = await harness.handle(registration(1))
        assert error.error_code == ErrorCode.NOT_CONTROLLER
        harness.controller.run_periodic_tasks()
        harness.controller.fence_broker(1)
        assert harness.quorum.batches == []

    harness.run(scenario)


def test_only_the_first_controller_of_a_cluster_writes_the_bootstrap_records() -> None:
    harness = ControllerHarness()
    harness.lead(1)
    harness.commit()
    assert harness.controller.epoch == 1
    assert harness.image.features["metadata.version"] == default_levels()["metadata.version"]
    assert isinstance(harness.quorum.batches[0][2][0], BeginTransactionRecord)
    harness.follow()
    harness.lead(3)
    assert len(harness.quorum.batches) == 1


def test_an_open_metadata_transaction_is_aborted_first() -> None:
    harness = ControllerHarness()
    harness.quorum.leads_in = 2
    harness.controller.activate(2, in_transaction=True)
    (_, _, records) = harness.quorum.batches[0]
    assert isinstance(records[0], AbortTransactionRecord)
    assert isinstance(records[1], BeginTransactionRecord)


def test_a_response_is_sent_when_its_records_are_published() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        asked = harness.loop.create_task(harness.handle(creation("orders")))
        await harness.turn()
        assert not asked.done()
        harness.controller.on_published(harness.quorum.end_offset - 2)
        await harness.turn()
        assert not asked.done()
        harness.commit()
        assert code(await asked) == ErrorCode.NONE
        assert names(harness) == {"orders"}

    harness.run(scenario)


def test_a_decision_without_records_waits_for_earlier_records() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        asked = [harness.loop.create_task(harness.handle(creation("orders"))) for _ in range(2)]
        await harness.turn()
        assert not any(item.done() for item in asked)
        harness.commit()
        codes = [code(await item) for item in asked]
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]

    harness.run(scenario)


def test_requests_that_wait_at_a_resignation_get_not_controller() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        asked = harness.loop.create_task(harness.handle(creation("orders")))
        await harness.turn()
        harness.follow()
        assert code(await asked) == ErrorCode.NOT_CONTROLLER
        harness.lose_uncommitted()
        harness.lead(5)
        assert code(await harness.send(creation("orders"))) == ErrorCode.NONE

    harness.run(scenario)


def test_uncommitted_decisions_are_dropped_with_the_epoch() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        lost = harness.loop.create_task(harness.handle(creation("lost")))
        await harness.turn()
        harness.follow()
        await lost
        harness.lose_uncommitted()
        harness.lead(2)
        assert code(await harness.send(creation("lost"))) == ErrorCode.NONE
        assert names(harness) == {"lost"}

    harness.run(scenario)


def test_decisions_of_one_epoch_are_not_appended_in_another() -> None:
    """The quorum has a newer epoch, and the controller does not know yet."""
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        written = len(harness.quorum.batches)
        harness.quorum.leads_in = 2
        assert code(await harness.handle(creation("orders"))) == ErrorCode.NOT_CONTROLLER
        assert not harness.controller.is_active
        assert len(harness.quorum.batches) == written
        harness.controller.activate(2)
        assert code(await harness.send(creation("orders"))) == ErrorCode.NONE
        assert harness.quorum.batches[-1][1] == 2

    harness.run(scenario)


def test_a_disk_error_makes_the_controller_resign() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        harness.quorum.disk_failure = OSError(28, "No space left on device")
        error = await harness.handle(creation("orders"))
        assert code(error) == ErrorCode.KAFKA_STORAGE_ERROR
        assert "No space left" in error.topics[0].error_message
        assert not harness.controller.is_active

    harness.run(scenario)


def test_requests_time_out_without_a_commit_and_their_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ControllerHarness()
    monkeypatch.setattr(module, "MAX_WAITING_REQUESTS", 2)

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        asked = [harness.loop.create_task(harness.handle(creation(f"t{n}"))) for n in range(3)]
        await harness.turn()
        assert [item.done() for item in asked] == [False, False, True]
        codes = [code(await item) for item in asked]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 3
        harness.commit()
        assert names(harness) == {"t0", "t1"}

    harness.run(scenario)


def test_a_cancelled_request_does_not_block_the_others() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        impatient, patient = (
            harness.loop.create_task(harness.handle(creation(name))) for name in "ab"
        )
        await harness.turn()
        impatient.cancel()
        harness.commit()
        assert code(await patient) == ErrorCode.NONE

    harness.run(scenario)


def test_an_idle_log_gets_a_no_op_record() -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        written = len(harness.quorum.batches)
        harness.controller.run_periodic_tasks()
        assert len(harness.quorum.batches) == written
        await harness.pass_ms(500)
        harness.controller.run_periodic_tasks()
        harness.controller.run_periodic_tasks()
        assert [records for _, _, records in harness.quorum.batches[written:]] == [[NoOpRecord()]]

    harness.run(scenario)
