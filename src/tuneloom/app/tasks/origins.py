"""How the origin of a candidate tells whether another task gave it."""

TRANSFER, SHARE = "transfer:", "share:"
"""How origins of borrowed candidates begin: from the bank, from a task of the same job."""


def is_borrowed(origin: str) -> bool:
    """Whether a candidate with this origin came from another task."""
    return origin.startswith((TRANSFER, SHARE))
