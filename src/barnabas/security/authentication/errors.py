"""Errors of the settings of SASL."""


class SaslConfigError(Exception):
    """Settings of SASL with which a node cannot start. The message names no secrets."""
