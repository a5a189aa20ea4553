"""Refused values as messages repeat them: cut in the middle where they are long."""

SHOWN = 200  # characters


def shown(value: object) -> str:
    """A value as Python spells it."""
    return cut(repr(value))


def cut(text: str) -> str:
    """A text's beginning and end."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
