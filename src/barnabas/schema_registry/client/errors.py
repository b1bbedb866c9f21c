"""The exceptions of the client."""


class SchemaRegistryError(Exception):
    """An error response: the HTTP status, the registry's error code and its message."""

    UNKNOWN = -1
    """The error code if the response is not a registry's."""

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
    """No registry responded. The HTTP status is 0."""

    def __init__(self, error_message: str) -> None:
        super().__init__(0, self.UNKNOWN, error_message)

    def __str__(self) -> str:
        return self.error_message

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.error_message,)

    __repr__ = __str__


class OAuthTokenError(Exception):
    """The token endpoint returned no token."""

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
