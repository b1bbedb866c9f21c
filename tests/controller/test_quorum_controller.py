"""The controller of one node among several: active, standing by, and in between."""

from typing import Any

import pytest
from tests.controller.harness import Stage, creation, registration

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


def names(stage: Stage) -> set[str]:
    return {topic.name for topic in stage.image.topics}


def test_an_inactive_controller_responds_with_not_controller() -> None:
    stage = Stage()

    async def life() -> None:
        assert not stage.controller.is_active
        assert stage.controller.epoch == -1
        assert code(await stage.handle(creation("orders"))) == ErrorCode.NOT_CONTROLLER
        refused = await stage.handle(registration(1))
        assert refused.error_code == ErrorCode.NOT_CONTROLLER
        stage.controller.run_periodic_tasks()
        stage.controller.fence_broker(1)
        assert stage.quorum.batches == []

    stage.run(life)


def test_only_the_first_controller_of_a_cluster_writes_the_bootstrap_records() -> None:
    stage = Stage()
    stage.lead(1)
    stage.commit()
    assert stage.controller.epoch == 1
    assert stage.image.features["metadata.version"] == default_levels()["metadata.version"]
    assert isinstance(stage.quorum.batches[0][2][0], BeginTransactionRecord)
    stage.follow()
    stage.lead(3)
    assert len(stage.quorum.batches) == 1


def test_an_open_metadata_transaction_is_aborted_first() -> None:
    stage = Stage()
    stage.quorum.leads_in = 2
    stage.controller.activate(2, in_transaction=True)
    (_, _, records) = stage.quorum.batches[0]
    assert isinstance(records[0], AbortTransactionRecord)
    assert isinstance(records[1], BeginTransactionRecord)


def test_a_response_is_sent_when_its_records_are_published() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        asked = stage.loop.create_task(stage.handle(creation("orders")))
        await stage.turn()
        assert not asked.done()
        stage.controller.on_published(stage.quorum.end_offset - 2)
        await stage.turn()
        assert not asked.done()
        stage.commit()
        assert code(await asked) == ErrorCode.NONE
        assert names(stage) == {"orders"}

    stage.run(life)


def test_a_decision_without_records_waits_for_earlier_records() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        asked = [stage.loop.create_task(stage.handle(creation("orders"))) for _ in range(2)]
        await stage.turn()
        assert not any(each.done() for each in asked)
        stage.commit()
        codes = [code(await each) for each in asked]
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]

    stage.run(life)


def test_requests_that_wait_at_a_resignation_get_not_controller() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        asked = stage.loop.create_task(stage.handle(creation("orders")))
        await stage.turn()
        stage.follow()
        assert code(await asked) == ErrorCode.NOT_CONTROLLER
        stage.lose_uncommitted()
        stage.lead(5)
        assert code(await stage.ask(creation("orders"))) == ErrorCode.NONE

    stage.run(life)


def test_uncommitted_decisions_are_dropped_with_the_epoch() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        lost = stage.loop.create_task(stage.handle(creation("lost")))
        await stage.turn()
        stage.follow()
        await lost
        stage.lose_uncommitted()
        stage.lead(2)
        assert code(await stage.ask(creation("lost"))) == ErrorCode.NONE
        assert names(stage) == {"lost"}

    stage.run(life)


def test_decisions_of_one_epoch_are_not_appended_in_another() -> None:
    """The quorum has moved on, and its news are still on their way to the controller."""
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        written = len(stage.quorum.batches)
        stage.quorum.leads_in = 2
        assert code(await stage.handle(creation("orders"))) == ErrorCode.NOT_CONTROLLER
        assert not stage.controller.is_active
        assert len(stage.quorum.batches) == written
        stage.controller.activate(2)
        assert code(await stage.ask(creation("orders"))) == ErrorCode.NONE
        assert stage.quorum.batches[-1][1] == 2

    stage.run(life)


def test_a_disk_error_makes_the_controller_resign() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        stage.quorum.disk_failure = OSError(28, "No space left on device")
        refused = await stage.handle(creation("orders"))
        assert code(refused) == ErrorCode.KAFKA_STORAGE_ERROR
        assert "No space left" in refused.topics[0].error_message
        assert not stage.controller.is_active

    stage.run(life)


def test_requests_time_out_without_a_commit_and_their_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    monkeypatch.setattr(module, "MAX_WAITING_REQUESTS", 2)

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        asked = [stage.loop.create_task(stage.handle(creation(f"t{n}"))) for n in range(3)]
        await stage.turn()
        assert [each.done() for each in asked] == [False, False, True]
        codes = [code(await each) for each in asked]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 3
        stage.commit()
        assert names(stage) == {"t0", "t1"}

    stage.run(life)


def test_a_cancelled_request_does_not_block_the_others() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        await stage.join(1)
        impatient, patient = (stage.loop.create_task(stage.handle(creation(name))) for name in "ab")
        await stage.turn()
        impatient.cancel()
        stage.commit()
        assert code(await patient) == ErrorCode.NONE

    stage.run(life)


def test_an_idle_log_gets_a_no_op_record() -> None:
    stage = Stage()

    async def life() -> None:
        stage.lead(1)
        stage.commit()
        written = len(stage.quorum.batches)
        stage.controller.run_periodic_tasks()
        assert len(stage.quorum.batches) == written
        await stage.pass_ms(500)
        stage.controller.run_periodic_tasks()
        stage.controller.run_periodic_tasks()
        assert [records for _, _, records in stage.quorum.batches[written:]] == [[NoOpRecord()]]

    stage.run(life)
