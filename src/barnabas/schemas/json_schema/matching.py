"""How many of one side can be paired with the other, each with one of its own."""

from collections.abc import Sequence


def largest_matching(partners: Sequence[Sequence[int]]) -> int:
    """`partners` has for each on the left those on the right that it may be paired with.

    Augmenting paths are found breadth first, so that no number of them meets Python's stack.
    """
    partner_of: dict[int, int] = {}
    return sum(_augment(left, partners, partner_of) for left in range(len(partners)))


def _augment(start: int, partners: Sequence[Sequence[int]], partner_of: dict[int, int]) -> bool:
    reached_from: dict[int, int] = {}
    waiting = [start]
    for left in waiting:
        for right in partners[left]:
            if right in reached_from:
                continue
            reached_from[right] = left
            if right not in partner_of:
                _flip(right, start, reached_from, partner_of)
                return True
            waiting.append(partner_of[right])
    return False


def _flip(right: int, start: int, reached_from: dict[int, int], partner_of: dict[int, int]) -> None:
    """Pair along the path from its free end back to the start."""
    left_to_right = {left: each for each, left in partner_of.items()}
    while True:
        left = reached_from[right]
        partner_of[right] = left
        if left == start:
            return
        right = left_to_right[left]
