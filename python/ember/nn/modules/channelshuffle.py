"""Channels mixed between groups."""

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Channels as (groups, channels of a group), transposed."""

    __constants__ = ["groups"]

    def __init__(self, groups) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
