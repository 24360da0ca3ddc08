"""spawn(): one function in several processes, and an exception here when one of them fails."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "spawn",
           "start_processes"]


class ProcessException(Exception):
    """A process of spawn() failed: which one, by index and process id."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised an exception: the message has its traceback."""


class ProcessExitedException(ProcessException):
    """It ended by a signal or with an exit code."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i, args, error_file):
    """In the process: fn, and what it raised to error_file."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has been interrupted too and says so
    except Exception:
        with open(error_file, "wb") as f:
            pickle.dump(traceback.format_exc(), f)
        sys.exit(1)


class ProcessContext:
    """The processes of a call of spawn(join=False)."""

    def __init__(self, processes, error_files):
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        return [int(p.pid) for p in self.processes]

    def _stop_others(self, grace_period):
        """Ask those that still run to end, then end them."""
        if grace_period is not None:
            deadline = time.monotonic() + grace_period
            for p in self.processes:
                p.join(max(0, deadline - time.monotonic()))
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        deadline = time.monotonic() + 30
        for p in self.processes:
            p.join(max(0, deadline - time.monotonic()))
            if p.is_alive():
                p.kill()
                p.join()

    def join(self, timeout=None, grace_period=None):
        """Wait for processes to end, until all have (True) or `timeout` seconds are over (False).

        When one fails the others are terminated (after `grace_period` seconds) and its failure is raised.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels, timeout=timeout):
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0 and failed is None:
                failed = i
        if failed is None:
            return not self.sentinels
        self._stop_others(grace_period)
        self._raise(failed)

    def _raise(self, i):
        p = self.processes[i]
        if os.path.getsize(self.error_files[i]) > 0:
            with open(self.error_files[i], "rb") as f:
                trace = pickle.load(f)
            raise ProcessRaisedException(f"\n\n-- Process {i:d} terminated with the following error:\n{trace}", i, p.pid)
        if p.exitcode < 0:
            try:
                name = signal.Signals(-p.exitcode).name
            except ValueError:
                name = f"<Unknown signal {-p.exitcode}>"
            raise ProcessExitedException(f"process {i:d} terminated with signal {name}", error_index=i, error_pid=p.pid,
                                         exit_code=p.exitcode, signal_name=name)
        raise ProcessExitedException(f"process {i:d} terminated with exit code {p.exitcode:d}", error_index=i,
                                     error_pid=p.pid, exit_code=p.exitcode)

    def __del__(self):
        for path in self.error_files:
            try:
                os.unlink(path)
            except OSError:
                continue  # the temporary folder has been cleaned


class SpawnContext(ProcessContext):
    def __init__(self, processes, error_files):
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in processes i = 0..nprocs-1, started by `start_method`. Joins, or returns a ProcessContext."""
    from . import reductions  # noqa: F401  tensors among args travel through shared memory
    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="ember-spawn-")
        os.close(handle)
        process = context.Process(target=_run, args=(fn, i, args, path), daemon=daemon)
        error_files.append(path)
        process.start()
        processes.append(process)
    running = ProcessContext(processes, error_files)
    if not join:
        return running
    while not running.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes() with the method `spawn`: fn must be importable, args picklable. join: wait, and raise what a process
    raised.
    """
    if start_method != "spawn":
        warnings.warn(f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different "
                      "start_method use:\n\t\t torch.multiprocessing.start_processes(...)", FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
