"""The error of test brokers."""


class BrokerError(Exception):
    """The broker did not start, or rejected a request of the test; the message says why."""
