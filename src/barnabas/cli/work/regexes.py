"""Regular expressions as brokers read them: RE2's."""


def problem_with(pattern: str) -> str | None:
    """What keeps a broker from using it; None if nothing does."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        (told,) = error.args
        text = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        return text.partition(": ")[0]
    return None
