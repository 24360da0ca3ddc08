"""Anomaly mode: backward says which forward call made the node that failed or produced nan."""

import warnings

import ember

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Restore:
    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        ember.set_anomaly_enabled(*self.prev)


class detect_anomaly(_Restore):
    """Context manager: anomaly mode inside. check_nan: also raise when a gradient is nan."""

    def __init__(self, check_nan=True) -> None:
        self.prev = ember.is_anomaly_enabled(), ember.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)

    def __enter__(self) -> None:
        ember.set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly(_Restore):
    """Sets anomaly mode at once; as a context manager also restores it."""

    def __init__(self, mode, check_nan=True) -> None:
        self.prev = ember.is_anomaly_enabled(), ember.is_anomaly_check_nan_enabled()
        ember.set_anomaly_enabled(mode, check_nan)
