"""The lights: what a call does on each floor (fall), what it recorded (graph)."""

from .fall import Fall, fall
from .graph import Graph, graph

__all__ = ["Fall", "Graph", "fall", "graph"]
