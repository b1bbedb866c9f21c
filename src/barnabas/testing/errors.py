"""What a test learns when the broker cannot do as it is told."""


class BrokerError(Exception):
    """The broker did not start, or refused what the test asked of it; the message says why."""
