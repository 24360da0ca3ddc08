"""Several processes that train together: not in this build, and is_available() says so."""

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched"]


def is_available():
    """Whether processes can be grouped: no, this build has no distributed package."""
    return False


def is_initialized():
    """Whether a process group exists: never, there is one process."""
    return False


def is_torchelastic_launched():
    import os
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
