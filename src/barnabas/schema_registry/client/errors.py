"""What can go wrong between a client and a registry."""


class SchemaRegistryError(Exception):
    """The registry said no: the HTTP status, its own finer code, and its words."""

    UNKNOWN = -1
    """The code of an answer that is not one of a registry."""

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(http_status_code, error_code, error_message)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message

    def __str__(self) -> str:
        return (
            f"{self.error_message} (HTTP status code {self.http_status_code}, "
            f"SR code {self.error_code})"
        )

    __repr__ = __str__


class RegistryUnreachableError(SchemaRegistryError, ConnectionError):
    """No registry answered; there is no HTTP status, so it is 0."""

    def __init__(self, error_message: str) -> None:
        super().__init__(0, self.UNKNOWN, error_message)

    def __str__(self) -> str:
        return self.error_message

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.error_message,)

    __repr__ = __str__


class OAuthTokenError(Exception):
    """The token endpoint gave no token."""

    def __init__(
        self, message: str, status_code: int | None = None, response_text: str | None = None
    ) -> None:
        super().__init__(message, status_code, response_text)
        self.message = message
        self.status_code = status_code
        self.response_text = response_text

    def __str__(self) -> str:
        if self.status_code is None:
            return self.message
        return f"{self.message} (HTTP {self.status_code}): {self.response_text}"
