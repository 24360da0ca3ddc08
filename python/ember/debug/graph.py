"""ember.graph(loss): the recorded graph as a drawing, layer by layer from the result to the leaves, with what each node saved."""

from html import escape

import ember

from .fall import _address, _tensors, fields_of, saved_fields, size

LIMIT = 300  # nodes that are drawn
_BOX, _HIGH, _GAP_X, _GAP_Y, _LETTER = 34, 46, 22, 34, 7.3
_STYLE = """svg{max-width:100%;height:auto}text{font:12px ui-monospace,'DejaVu Sans Mono',monospace;fill:#1d2430}
.s{font-size:11px;fill:#5d6778}
.t{font:13px system-ui,'DejaVu Sans',sans-serif}.b{font-weight:600}.box{stroke-width:1.2}.op{fill:#f1ebfb;stroke:#8a5cd1}
.leaf{fill:#e6f4ee;stroke:#2f9e77}.end{fill:#fdeee6;stroke:#e0672f}.e{fill:none;stroke:#98a2b3;stroke-width:1.3}.head{fill:#98a2b3}
.bar{fill:#e0672f}.ground{fill:#fff}@media (prefers-color-scheme:dark){text{fill:#e6e9ef}.s{fill:#a3adbc}.ground{fill:#0f131a}
.op{fill:#241d36;stroke:#b194ea}.leaf{fill:#14281f;stroke:#5cc7a1}.end{fill:#35200f;stroke:#f0905f}
.e{stroke:#667085}.head{fill:#667085}}"""


class Node:
    """A record: its name, the fields it saved, the bytes that only the graph keeps."""

    def __init__(self, fn, number):
        self.fn, self.number, self.name = fn, number, fn.name().rpartition("::")[2]
        self.edges, self.saved, self.own, self.label, self.level = [], [], 0, "", 0

    @property
    def saved_bytes(self):
        return sum(n for _, _, n, _ in self.saved)


class Graph:
    """What `ember.graph` returns: shows itself in notebooks, `save(path)` writes an SVG file."""

    def __init__(self, nodes, saved, own, leaves):
        self.nodes, self.saved_bytes, self.own_bytes, self.leaves = nodes, saved, own, leaves

    def __repr__(self):
        return (
            f"<ember.Graph: {len(self.nodes):,} nodes, {_leaves(self.leaves)}, {size(self.saved_bytes)} saved, "
            f"{size(self.own_bytes)} of it kept by the graph alone>"
        )

    def _repr_svg_(self):
        return _draw(self)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_())
        return path


def _leaves(n):
    return f"{n:,} {'leaf' if n == 1 else 'leaves'}"


def _collect(roots):
    """All nodes below the roots, by breadth, without recursion."""
    found, order = {}, []
    for fn in roots:
        if fn not in found:
            found[fn] = Node(fn, len(order))
            order.append(found[fn])
    at = 0
    while at < len(order):
        node = order[at]
        at += 1
        for fn, _ in node.fn.next_functions:
            if fn is None:
                continue
            below = found.get(fn)
            if below is None:
                below = found[fn] = Node(fn, len(order))
                order.append(below)
            node.edges.append(below)
    return order


def _levels(nodes):
    """Longest way from a root, so that every edge leads down."""
    waiting = {node: 0 for node in nodes}
    for node in nodes:
        for below in node.edges:
            waiting[below] += 1
    ready = [node for node in nodes if waiting[node] == 0]
    while ready:
        node = ready.pop()
        for below in node.edges:
            below.level = max(below.level, node.level + 1)
            waiting[below] -= 1
            if waiting[below] == 0:
                ready.append(below)


def _names(names):
    """{id of a parameter: name} of a module, or of pairs, or of a dictionary."""
    if names is None:
        return {}
    pairs = names.named_parameters() if hasattr(names, "named_parameters") else names.items() if hasattr(names, "items") else names
    return {id(t): name for name, t in pairs}


def graph(outputs, names=None):
    """The graph recorded behind a tensor, or several: a Graph to look at.

    names: a module (or name: tensor pairs) whose parameters' names stand at the leaves. Graphs of any depth are counted whole;
    the drawing shows the 300 nodes nearest to the outputs.
    """
    outputs = [outputs] if isinstance(outputs, ember.Tensor) else list(outputs)
    roots = [t.grad_fn for t in outputs]
    for t, fn in zip(outputs, roots):
        if fn is None:
            raise ValueError(
                "ember.graph: "
                + (
                    "a leaf has no graph behind it"
                    if t.requires_grad
                    else "nothing was recorded: the tensor does not require grad (was it made under no_grad?)"
                )
            )
    nodes, known = _collect(roots), _names(names)
    leaves, held = 0, set()
    for node in nodes:
        variable = getattr(node.fn, "variable", None)
        if variable is not None:
            leaves += 1
            held.add(_address(variable))
            shape = ", ".join(map(str, variable.shape))
            node.label = f"{known.get(id(variable), 'leaf')} [{shape}]"
    total = own = 0
    for node in nodes:
        if not fields_of(type(node.fn)):
            continue
        node.saved, _ = saved_fields(node.fn)
        total += node.saved_bytes
        for t in _saved_tensors(node.fn):
            address = _address(t)
            if address is not None and address not in held:
                held.add(address)
                node.own += t.untyped_storage().nbytes()
        own += node.own
    return Graph(nodes, total, own, leaves)


def _saved_tensors(fn):
    for field in fields_of(type(fn)):
        try:
            value = getattr(fn, field)
        except RuntimeError:
            continue  # released, or written over: saved_fields says so
        yield from _tensors([value])


# ---------------------------------------------------------------- drawing
class _Bend:
    """Where an edge that skips a layer passes it."""

    def __init__(self, level):
        self.level, self.width, self.x = level, 10, 0.0


def _note(node):
    if node.label or not node.saved_bytes:
        return node.label
    return f"saved {size(node.saved_bytes)}" + (f", keeps {size(node.own)}" if node.own else "")


def _wide(node):
    note = _note(node)
    node.width = max(len(node.name), len(note)) * _LETTER + _BOX


def _place(nodes):
    """Layers with every node and bend in order; sets x. Returns (layers, edges as lists of points' owners)."""
    kept = set(nodes)
    layers, edges = {}, []
    for node in nodes:
        _wide(node)
        layers.setdefault(node.level, []).append(node)
    for node in nodes:
        for below in node.edges:
            if below not in kept:
                continue
            way = [node]
            for level in range(node.level + 1, below.level) if below.level - node.level <= 40 else ():
                way.append(_Bend(level))
                layers[level].append(way[-1])
            edges.append(way + [below])
    layers = [layers[level] for level in sorted(layers)]
    up, down = {}, {}
    for way in edges:
        for a, b in zip(way, way[1:]):
            down.setdefault(a, []).append(b)
            up.setdefault(b, []).append(a)
    _spread(layers, up, down)
    return layers, edges


def _spread(layers, up, down):
    for layer in layers:
        x = 0.0
        for item in layer:
            item.x = x + item.width / 2
            x += item.width + _GAP_X
    for sweep in range(12):  # each layer by the middle of its neighbours, from above, then from below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            near = up if sweep % 2 == 0 else down
            for item in layer:
                others = near.get(item)
                item.want = sum(o.x for o in others) / len(others) if others else item.x
            layer.sort(key=lambda item: item.want)
            x = float("-inf")
            for item in layer:
                item.x = max(item.want, x + item.width / 2)
                x = item.x + item.width / 2 + _GAP_X
            middle = sum(item.x - item.want for item in layer) / len(layer)  # what was pushed right moves back
            for item in layer:
                item.x -= middle


def _curve(points):
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        half = (y1 - y0) / 2
        text += f"C{x0:.1f} {y0 + half:.1f} {x1:.1f} {y1 - half:.1f} {x1:.1f} {y1:.1f}"
    return text


def _box(node, x, y, most):
    kind = "leaf" if node.label else "end" if node.level == 0 else "op"
    note = _note(node)
    fields = "\n".join(f"{field}: {text}" + (f", {size(n)}" if n else "") for field, text, n, _ in node.saved)
    tip = escape(node.name + ("\n" + fields if fields else "") + (f"\n{size(node.own)} kept by the graph alone" if node.own else ""))
    left, first = x - node.width / 2, y + (19 if note else 28)
    out = (
        f'<g><title>{tip}</title><rect class="box {kind}" x="{left:.1f}" y="{y}" width="{node.width:.1f}" height="{_HIGH}" rx="8"/>'
        f'<text x="{x:.1f}" y="{first}" text-anchor="middle">{escape(node.name)}</text>'
    )
    if note:
        out += f'<text class="s" x="{x:.1f}" y="{y + 35}" text-anchor="middle">{escape(note)}</text>'
    if node.own:
        width = max((node.width - 16) * node.own / most, 2)
        out += f'<rect class="bar" x="{left + 8:.1f}" y="{y + _HIGH - 6}" width="{width:.1f}" height="3" rx="1.5"/>'
    return out + "</g>"


_LINES = (
    ("end", "the result, or one of several: backward begins here"),
    ("op", "what backward runs for one call; \u201csaved\u201d are the tensors that it needs for that"),
    ("leaf", "a leaf: the gradient that arrives is added to .grad"),
)
_KEY = "".join(
    f'<rect class="box {kind}" x="20" y="{39 + 17 * i}" width="20" height="12" rx="3"/>'
    f'<text class="s" x="48" y="{49 + 17 * i}">{words}</text>'
    for i, (kind, words) in enumerate(_LINES)
) + (
    '<rect class="bar" x="20" y="95" width="20" height="3" rx="1.5"/><text class="s" x="48" y="100">\u201ckeeps\u201d: bytes that would be'
    " free without the graph, at the first node that saved them</text>"
)


def _draw(whole):
    nodes = whole.nodes[:LIMIT]
    for node in nodes:
        node.level = 0
    kept = set(nodes)
    cut = [Node.__new__(Node) for _ in nodes]
    for copy, node in zip(cut, nodes):  # the part that is drawn, with edges within it
        copy.__dict__.update(node.__dict__)
        copy.edges = [cut[below.number] for below in node.edges if below in kept]
    _levels(cut)
    layers, edges = _place(cut)
    everything = [item for layer in layers for item in layer]
    left = min(item.x - item.width / 2 for item in everything) - 20
    width = max(max(item.x + item.width / 2 for item in everything) - left + 20, 680)
    top, step = 122, _HIGH + _GAP_Y
    height = top + len(layers) * step + 10
    index = {item: i for i, layer in enumerate(layers) for item in layer}
    out = []
    for way in edges:
        points = []
        for i, item in enumerate(way):
            x, y = item.x - left, top + index[item] * step
            if isinstance(item, _Bend):
                points += [(x, y), (x, y + _HIGH)]
            else:
                points.append((x, y + _HIGH if i == 0 else y))
        out.append(f'<path class="e" d="{_curve(points)}" marker-end="url(#a)"/>')
    most = max((node.own for node in cut), default=1) or 1
    out += [_box(item, item.x - left, top + index[item] * step, most) for item in everything if isinstance(item, Node)]
    missing = len(whole.nodes) - len(nodes)
    note = f"; the {missing:,} nodes farther away are not drawn" if missing else ""
    words = (
        f"{len(whole.nodes):,} nodes, {_leaves(whole.leaves)}; {size(whole.saved_bytes)} saved, "
        f"{size(whole.own_bytes)} of it kept by the graph alone{note}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f}'
        f' {height}"><style>{_STYLE}</style><defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        f' orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs><rect class="ground" width="100%" height="100%"/><text'
        f' class="t b" x="20" y="26">{escape(words)}</text>{_KEY}{"".join(out)}</svg>\n'
    )
