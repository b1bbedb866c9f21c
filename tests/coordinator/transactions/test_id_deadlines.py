"""Ids by the time to look at them."""

from barnabas.coordinator.transactions.timeouts import IdDeadlines


def test_ids_are_returned_once_when_their_deadline_has_passed() -> None:
    due = IdDeadlines()
    due.watch("b", 20)
    due.watch("a", 10)
    assert list(due.passed(10, 99)) == []
    assert list(due.passed(11, 99)) == ["a"]
    assert list(due.passed(99, 99)) == ["b"]
    assert list(due.passed(99, 99)) == []


def test_an_earlier_deadline_is_used_and_a_later_one_is_not() -> None:
    due = IdDeadlines()
    due.watch("a", 20)
    due.watch("a", 30)
    due.watch("a", 10)
    assert list(due.passed(11, 99)) == ["a"]
    assert list(due.passed(99, 99)) == []
    due.watch("a", 30)
    assert list(due.passed(31, 99)) == ["a"]


def test_extending_a_deadline_costs_no_memory() -> None:
    due = IdDeadlines()
    for moment in range(10_000):
        due.watch("a", moment)
    assert len(due._heap) == 1


def test_passed_ids_are_limited() -> None:
    due = IdDeadlines()
    for name in "abc":
        due.watch(name, 1)
    assert list(due.passed(9, 2)) == ["a", "b"]
    assert list(due.passed(9, 2)) == ["c"]
