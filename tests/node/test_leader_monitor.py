"""A node without an active controller logs the likely reason, once a minute."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from tests.log_records import barnabas_log_lines

from barnabas.node.errors import FatalErrors
from barnabas.node.quorum import FIRST_WARNING_MS, WARNING_INTERVAL_MS, QuorumLeaderMonitor
from barnabas.raft.addresses import ControllerAddress, PeerFailures
from barnabas.wire.errors import ErrorCode

HERE, THERE = ControllerAddress("here", 1), ControllerAddress("there", 2)


class MonitoredQuorum:
    def __init__(self, *voters: int) -> None:
        self.peer_failures = PeerFailures()
        self.fatal = FatalErrors()
        self.quorum = SimpleNamespace(
            is_leader_reachable=False,
            peer_failures=self.peer_failures,
            voters=SimpleNamespace(ids=lambda: list(voters)),
        )
        quorum: Any = self.quorum
        self._monitor = QuorumLeaderMonitor(quorum, "castle", self.fatal)

    def check_at(self, *times_ms: int) -> None:
        for now_ms in times_ms:
            self._monitor.check(now_ms)

    def fail_with_other_cluster_id(self, *addresses: ControllerAddress) -> None:
        response = SimpleNamespace(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        for address in addresses:
            self.peer_failures.on_failure(address, response)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return barnabas_log_lines(caplog, logging.WARNING)


def test_the_monitor_logs_the_voters_and_the_failure_of_every_controller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitored = MonitoredQuorum(1, 2, 3)
    monitored.peer_failures.on_failure(HERE, OSError(111, "here:1: Connection refused"))
    monitored.fail_with_other_cluster_id(THERE)
    monitored.check_at(0, FIRST_WARNING_MS - 1)
    assert warnings(caplog) == []
    monitored.check_at(FIRST_WARNING_MS)
    assert warnings(caplog) == [
        "no active controller for 5 s: a majority of the voters 1, 2, 3 must run and reach each "
        "other. here:1: Connection refused; there:2: it belongs to another cluster"
    ]
    assert not monitored.fatal.reason


def test_the_monitor_logs_again_after_a_minute_and_not_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitored = MonitoredQuorum()
    monitored.check_at(0, FIRST_WARNING_MS, FIRST_WARNING_MS + WARNING_INTERVAL_MS - 1)
    assert len(warnings(caplog)) == 1
    assert (
        "controller.quorum.bootstrap.servers must name a running controller" in warnings(caplog)[0]
    )
    monitored.check_at(FIRST_WARNING_MS + WARNING_INTERVAL_MS)
    assert len(warnings(caplog)) == 2


def test_the_monitor_logs_nothing_during_an_election(caplog: pytest.LogCaptureFixture) -> None:
    monitored = MonitoredQuorum(1, 2, 3)
    monitored.check_at(0, 4_000)
    monitored.quorum.is_leader_reachable = True
    monitored.check_at(4_500)
    monitored.quorum.is_leader_reachable = False
    monitored.check_at(5_000, 9_900)
    assert warnings(caplog) == []


def test_a_new_node_that_reaches_only_controllers_of_another_cluster_is_stopped() -> None:
    monitored = MonitoredQuorum()
    monitored.fail_with_other_cluster_id(HERE, THERE)
    monitored.check_at(0, FIRST_WARNING_MS)
    assert "This node belongs to cluster castle, and here:1, there:2 to another" in (
        monitored.fatal.reason
    )


def test_a_node_that_had_a_leader_keeps_running_among_controllers_of_another_cluster() -> None:
    monitored = MonitoredQuorum(1, 2, 3)
    monitored.quorum.is_leader_reachable = True
    monitored.check_at(0)
    monitored.quorum.is_leader_reachable = False
    monitored.fail_with_other_cluster_id(HERE)
    monitored.check_at(1_000, 1_000 + FIRST_WARNING_MS)
    assert not monitored.fatal.reason


def test_a_failure_of_a_peer_is_logged_once_as_long_as_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="barnabas.raft.addresses")
    peer_failures = PeerFailures()
    refused = OSError(111, "here:1: Connection refused")
    peer_failures.on_failure(HERE, refused)
    peer_failures.on_failure(HERE, refused)
    peer_failures.on_response(HERE)
    peer_failures.on_failure(HERE, refused)
    assert barnabas_log_lines(caplog) == ["The controller at here:1: Connection refused"] * 2
