"""Where the time goes: profile, with a schedule if the program runs long."""

from ember.autograd.profiler import record_function
from ember.autograd.profiler_util import DeviceType

from .profiler import (ProfilerAction, ProfilerActivity, profile, schedule, supported_activities,
                       tensorboard_trace_handler)

__all__ = ["profile", "schedule", "supported_activities", "tensorboard_trace_handler", "ProfilerAction",
           "ProfilerActivity", "kineto_available", "DeviceType", "record_function"]


def kineto_available():
    """Whether PyTorch's own tracer is here. It is not; recordings come from the dispatcher."""
    return False
