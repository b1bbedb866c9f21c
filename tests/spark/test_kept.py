"""A process keeps a few things for the tasks that follow, and lets the others go."""

from barnabas.spark.kept import Kept


def test_what_is_kept_is_made_once() -> None:
    kept: Kept[str, object] = Kept(2)
    assert kept.get("a", object) is kept.get("a", object)


def test_what_was_not_used_for_longest_is_let_go() -> None:
    gone: list[str] = []
    kept: Kept[str, str] = Kept(2, let_go=gone.append)
    for key in ("a", "b", "a", "c"):
        kept.get(key, lambda key=key: f"value of {key}")
    assert gone == ["value of b"]
    assert kept.get("a", lambda: "another") == "value of a"


def test_what_is_of_no_use_any_more_is_made_anew() -> None:
    spoilt = {"first"}
    kept: Kept[str, str] = Kept(2, is_of_use=lambda value: value not in spoilt)
    assert kept.get("a", lambda: "first") == "first"
    assert kept.get("a", lambda: "second") == "second"


def test_nothing_is_worth_keeping_too() -> None:
    kept: Kept[str, None] = Kept(2)
    asked: list[str] = []
    for _ in range(2):
        kept.get("a", lambda: asked.append("a"))
    assert asked == ["a"]
