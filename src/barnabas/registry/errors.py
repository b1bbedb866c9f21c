"""The errors of the REST API: Confluent's codes, the HTTP status they imply, and a message."""


class RegistryError(Exception):
    """The first three digits of `error_code` are the HTTP status."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message

    @property
    def status(self) -> int:
        return self.error_code if self.error_code < 1000 else self.error_code // 100


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(which: int | str | None = None) -> RegistryError:
    return RegistryError(
        40403, "Schema not found" if which is None else f"Schema {which} not found"
    )


def subject_soft_deleted(subject: str) -> RegistryError:
    advice = "Set permanent=true to delete permanently"
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.{advice}")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    missing = "was not deleted first before being permanently deleted"
    return RegistryError(40405, f"Subject '{subject}' {missing}")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    advice = "Set permanent=true to delete permanently"
    return RegistryError(40406, f"Subject '{subject}' Version {version} was soft deleted.{advice}")


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    missing = "was not deleted first before being permanently deleted"
    return RegistryError(40407, f"Subject '{subject}' Version {version} {missing}")


def config_not_found(subject: str) -> RegistryError:
    missing = "does not have subject-level compatibility configured"
    return RegistryError(40408, f"Subject '{subject}' {missing}")


def mode_not_found(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, reasons: list[str]) -> RegistryError:
    earlier = "Schema being registered is incompatible with an earlier schema for subject"
    return RegistryError(409, f'{earlier} "{subject}", details: [{", ".join(reasons)}]')


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, reason)


def invalid_version(version: str) -> RegistryError:
    allowed = 'Allowed values are between [1, 2^31-1] and the string "latest"'
    return RegistryError(
        42202, f"The specified version '{version}' is not a valid version id. {allowed}"
    )


def invalid_compatibility() -> RegistryError:
    levels = "none, backward, forward, full, backward_transitive, forward_transitive, and "
    return RegistryError(
        42203, f"Invalid compatibility level. Valid values are {levels}full_transitive"
    )


def invalid_mode() -> RegistryError:
    modes = "READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD"
    return RegistryError(42204, f"Invalid mode. Valid values are {modes}.")


def not_permitted(reason: str) -> RegistryError:
    return RegistryError(42205, reason)


def referenced(key: object) -> RegistryError:
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def too_large(reason: str) -> RegistryError:
    return RegistryError(42209, reason)


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def log_failed(reason: str) -> RegistryError:
    return RegistryError(50001, reason)


def log_timed_out(reason: str) -> RegistryError:
    return RegistryError(50002, reason)


def forwarding_failed(reason: str) -> RegistryError:
    return RegistryError(50003, reason)


def no_leader(reason: str) -> RegistryError:
    return RegistryError(50004, reason)
