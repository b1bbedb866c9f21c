"""The page about the clients' settings has every name."""

from tests.client.settings_page import PAGE, with_tables


def test_the_page_lists_the_names_that_there_are() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "update it: python -m tests.client.settings_page"
