"""Seeds and states of the default generator."""

import contextlib

from ._C import default_generator

__all__ = ["manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng", "default_generator"]


def manual_seed(seed):
    """Start the default generator anew from seed (an int; negative ones wrap). Returns the generator."""
    return default_generator.manual_seed(int(seed))


def seed():
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed():
    """The seed that the default generator was last given, as an int."""
    return default_generator.initial_seed()


def get_rng_state():
    """The default generator's state: a uint8 tensor in PyTorch's layout, for set_rng_state."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Puts the default generator back to what get_rng_state returned. RuntimeError for bytes that are no state."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Around a `with` block: whatever is drawn inside leaves the default generator as it was before."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
