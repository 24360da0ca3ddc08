"""profile: recordings by schedule. A recording is autograd.profiler's."""

import enum
import os
import socket
import time

from ember.autograd import profiler as recording

__all__ = ["supported_activities", "ProfilerAction", "ProfilerActivity", "schedule", "tensorboard_trace_handler", "profile"]


class ProfilerActivity(enum.Enum):
    """What can be looked at: CPU, and the devices that this build does not have."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities():
    return {ProfilerActivity.CPU}


class ProfilerAction(enum.Enum):
    """What a step does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """From a step's number to its action: skip_first steps of nothing, then rounds of wait, warmup and active steps."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
                             f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    length = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if skip_first_wait != 0:
            step += wait  # the first round has no wait
        if step < 0 or (repeat > 0 and step >= repeat * length):
            return ProfilerAction.NONE
        if step - (wait if skip_first_wait != 0 else 0) < 0:
            return ProfilerAction.NONE
        step %= length
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if step == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For on_trace_ready: writes each trace to a file of its own in `dir_name`."""
    def handler(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as e:
            raise RuntimeError("Can't create directory: " + dir_name) from e
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}{ending}"))

    return handler


def _check(activities):
    chosen = set(supported_activities() if activities is None else activities)
    if not chosen & supported_activities():
        raise AssertionError("No valid profiler activities found")
    return chosen


class profile:
    """Records what runs inside. With a schedule call step() after each step; on_trace_ready gets each finished round."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False, experimental_config=None,
                 execution_trace_observer=None, acc_events=False, use_cuda=None, custom_trace_id_callback=None):
        self.activities = _check(activities)
        self.schedule = schedule if schedule is not None else lambda step: ProfilerAction.RECORD
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler = None  # the recording: it runs, or it has ended
        self._running = False
        self._step_range = None

    # ---------------------------------------------------------------- recordings
    def _begin(self):
        self.profiler = recording.profile(record_shapes=self.record_shapes, profile_memory=self.profile_memory)
        self.profiler.__enter__()
        self._running = True

    def _end(self, save):
        self._end_step()
        self.profiler.__exit__(None, None, None)
        self._running = False
        if save and self.on_trace_ready:
            self.on_trace_ready(self)

    def _begin_step(self):
        if self._running and self.record_steps:
            self._step_range = recording.record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _end_step(self):
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _records(self):
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    # ---------------------------------------------------------------- what programs call
    def start(self):
        if self._records():
            self._begin()
        self._begin_step()

    def stop(self):
        if self._running:
            self._end(save=True)

    def __enter__(self):
        """Begins to record, or to follow the schedule. Returns the profile."""
        self.start()
        return self

    def __exit__(self, exc_type, value, trace):
        """Stops recording; what was recorded can be read from now on."""
        self.stop()
        return False

    def step(self):
        """The next step begins: what the schedule says of it is done."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        if self._running and (before is ProfilerAction.RECORD_AND_SAVE or not self._records()):
            self._end(save=True)
        if self._records() and not self._running:
            self._begin()
        self._begin_step()

    def _finished(self, what):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self):
        return self._finished("accessing events").function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._finished("getting key averages").key_averages(group_by_input_shape, group_by_stack_n,
                                                                   group_by_overload_name)

    def export_chrome_trace(self, path):
        self._finished("exporting chrome trace").export_chrome_trace(path)
