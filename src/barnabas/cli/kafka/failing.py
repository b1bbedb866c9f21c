"""How Kafka's commands say that they failed: with status 1, each where and how Kafka's does."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from barnabas.cli.work.refused import client_error, reason


@contextmanager
def reasons(tell: Callable[[str], None]) -> Iterator[None]:
    """End with status 1, and tell why, where there is a reason that a person can understand."""
    try:
        yield
    except Exception as error:
        why = java_reason(error)
        if why is None:
            raise
        tell(why)
        sys.exit(1)


def reasons_to_stderr() -> AbstractContextManager[None]:
    return reasons(lambda why: print(why, file=sys.stderr))


def java_reason(error: Exception) -> str | None:
    """Why, in Java's words where the broker had none; None for what only we can mend."""
    if (told := client_error(error)) is None:
        return reason(error)
    from barnabas.cli.kafka.wording import java_message

    return java_message(told)
