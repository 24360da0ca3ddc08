"""A progress bar for the examples."""
import sys
import time


class Progress:
    """A bar that redraws itself on a terminal, and a plain line now and then elsewhere."""

    def __init__(self, total, stream=sys.stderr, width=30):
        self.total, self.stream, self.width = total, stream, width
        self.live = stream.isatty()
        self.drawn = 0.0
        self.step = max(total // 10, 1)

    def update(self, done, text=""):
        now = time.monotonic()
        if self.live and (now - self.drawn > 0.05 or done == self.total):
            full = self.width * done // self.total
            self.stream.write(f"\r[{'#' * full}{'.' * (self.width - full)}] {done}/{self.total} {text}\x1b[K")
            self.drawn = now
        elif not self.live and (done % self.step == 0 or done == self.total):
            self.stream.write(f"step {done}/{self.total} {text}\n")
        self.stream.flush()

    def close(self):
        if self.live:
            self.stream.write("\n")
