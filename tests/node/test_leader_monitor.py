"""A node without an active controller says what keeps it from having one, and no more often."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from tests.logged import lines

from barnabas.node.errors import FatalErrors
from barnabas.node.leader_monitor import AGAIN_MS, PATIENCE_MS, QuorumLeaderMonitor
from barnabas.raft.addresses import PeerFailures
from barnabas.raft.addresses import ControllerAddress
from barnabas.wire.errors import ErrorCode

HERE, THERE = ControllerAddress("here", 1), ControllerAddress("there", 2)


class Watched:
    def __init__(self, *voters: int) -> None:
        self.contacts = PeerFailures()
        self.fatal = FatalErrors()
        self.quorum = SimpleNamespace(
            hears_leader=False,
            contacts=self.contacts,
            voters=SimpleNamespace(ids=lambda: list(voters)),
        )
        quorum: Any = self.quorum
        self._watch = QuorumLeaderMonitor(quorum, "castle", self.fatal)

    def at(self, *times_ms: int) -> None:
        for now_ms in times_ms:
            self._watch.check(now_ms)

    def strangers(self, *addresses: ControllerAddress) -> None:
        refusal = SimpleNamespace(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        for address in addresses:
            self.contacts.on_failure(address, refusal)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return lines(caplog, logging.WARNING)


def test_it_names_the_voters_and_why_each_gives_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched(1, 2, 3)
    watched.contacts.on_failure(HERE, OSError(111, "here:1: Connection refused"))
    watched.strangers(THERE)
    watched.at(0, PATIENCE_MS - 1)
    assert warnings(caplog) == []
    watched.at(PATIENCE_MS)
    assert warnings(caplog) == [
        "no active controller for 5 s: a majority of the voters 1, 2, 3 must run and reach each "
        "other. here:1: Connection refused; there:2: it belongs to another cluster"
    ]
    assert not watched.fatal.reason


def test_it_speaks_again_after_a_minute_and_not_before(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    watched.at(0, PATIENCE_MS, PATIENCE_MS + AGAIN_MS - 1)
    assert len(warnings(caplog)) == 1
    assert "controller.quorum.bootstrap.servers must lead to a controller" in warnings(caplog)[0]
    watched.at(PATIENCE_MS + AGAIN_MS)
    assert len(warnings(caplog)) == 2


def test_an_election_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(1, 2, 3)
    watched.at(0, 4_000)
    watched.quorum.hears_leader = True
    watched.at(4_500)
    watched.quorum.hears_leader = False
    watched.at(5_000, 9_900)
    assert warnings(caplog) == []


def test_a_new_node_that_meets_only_strangers_is_stopped() -> None:
    watched = Watched()
    watched.strangers(HERE, THERE)
    watched.at(0, PATIENCE_MS)
    assert "This node belongs to cluster castle, and here:1, there:2 to another" in (
        watched.fatal.reason
    )


def test_a_node_that_was_led_goes_on_among_strangers() -> None:
    watched = Watched(1, 2, 3)
    watched.quorum.hears_leader = True
    watched.at(0)
    watched.quorum.hears_leader = False
    watched.strangers(HERE)
    watched.at(1_000, 1_000 + PATIENCE_MS)
    assert not watched.fatal.reason


def test_a_failure_is_told_once_as_long_as_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="barnabas.raft.peer_failures")
    contacts = PeerFailures()
    refused = OSError(111, "here:1: Connection refused")
    contacts.on_failure(HERE, refused)
    contacts.on_failure(HERE, refused)
    contacts.on_response(HERE)
    contacts.on_failure(HERE, refused)
    assert lines(caplog) == ["The controller at here:1: Connection refused"] * 2
