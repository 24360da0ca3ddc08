"""The page of ember.fall: one HTML file with its style inside, no scripts, nothing fetched."""

import os
import sys
from html import escape

from .fall import duration, size

lights = sys.modules[__package__ + ".fall"]  # the package's attribute of that name is the function

ROW_LIMIT = 1500


def _style():
    with open(os.path.join(os.path.dirname(__file__), "page.css"), encoding="utf-8") as file:
        return file.read()


def _e(text):
    return escape(str(text))


def _plural(n, word):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


# ---------------------------------------------------------------- the floors
def _counts(told):
    ways = {"fast": 0, "parser": 0, "direct": 0}
    keys, libraries = {}, {}
    for call in told.calls:
        came = call.facts["came"]
        if came is not None and call.depth == 0 and not call.engine:
            ways["parser" if isinstance(came, tuple) else came] += 1
        for key, state, _, _ in lights.keys_table(call):
            if state == "passed":
                keys[key] = keys.get(key, 0) + 1
        for note in call.facts["notes"].splitlines():
            name = note.split(":")[0]
            libraries[name] = libraries.get(name, 0) + 1
    return ways, keys, libraries


def _floor(number, colour, name, what, happened, told, floor, calls):
    bar = ""
    if floor:
        spent = getattr(told, floor)
        fixed = told.fixed[floor] * calls
        share, tick = spent / max(told.time, 1), min(fixed / max(told.time, 1), 1)
        bar = (
            f'<div class="track" title="{_e(duration(spent))}, the fixed cost would be {_e(duration(fixed))}">'
            f'<i class="{colour}" style="width:{100 * share:.2f}%"></i><u style="left:{100 * tick:.2f}%"></u></div>'
            f'<span class="soft" style="font-size:12px"><b style="display:inline;color:var(--ink)">{duration(spent)}</b> ({share:.0%}); '
            f'fixed cost of {_plural(calls, "call")}: {duration(fixed)}</span>'
        )
    return (
        f'<div class="floor"><div class="num {colour}">{number}</div><div><b>{name}</b><span class="soft" style="font-size:12px">{what}'
        f"</span></div><div>{happened}</div><div>{bar}</div></div>"
    )


def _floors(told):
    ways, keys, libraries = _counts(told)
    python = sum(ways.values())
    engine = sum(1 for c in told.top if c.engine)
    inner = len(told.calls) - python - engine
    places = {c.place[:2] for c in told.top}
    passed = ", ".join(f"{key} {n}" for key, n in sorted(keys.items(), key=lambda item: -item[1])) or "none: straight to the kernels"
    kernels = sum(1 for c in told.calls if not c.parts)
    made = sum(c.made for c in told.calls if not c.parts)
    reused = sum(c.facts["reused"] for c in told.top)
    system = sum(c.facts["from_system"] for c in told.top)
    small = sum(c.facts["small"][0] for c in told.calls if not c.parts)
    by_library = ", ".join(f"{_e(name)} {n}" for name, n in sorted(libraries.items())) or "short loops only"
    from_python = f"{_plural(python, 'call')} from {_plural(len(places), 'line')}; the engine made {engine}, operators made {inner} inside"
    ways_in = f"fast slot {ways['fast']}, table parser {ways['parser']}, hand-written entry {ways['direct']} (time is in floor 1)"
    layers = f"layers passed: {_e(passed)}"
    kept = size(told.saved_bytes())
    recorded = f"{_plural(len(told.nodes), 'node')} recorded, keeping {kept} alive beyond the inputs (time is in floor 3)"
    blocks = f"{size(made)} of results; large blocks: {reused} reused, {system} from the system; {small} small blocks reused"
    ran = f"{_plural(kernels, 'kernel')} ran: {by_library}"
    rows = [
        _floor(1, "python", "Python", "your lines, and Ember's nn and optim", from_python, told, "python", len(told.top)),
        _floor(2, "python", "The bridge", "Python objects become C values", ways_in, told, None, 0),
        _floor(3, "layers", "The dispatcher", "keys decide which layers see a call", layers, told, "layers", len(told.calls)),
        _floor(4, "graph", "The graph", "autograd writes a record", recorded, told, None, 0),
        _floor(5, "kernel", "The kernels", "one loop for one device and dtype", ran, told, "kernel", kernels),
        _floor(6, "memory", "Memory", "the allocator's blocks", blocks, told, None, 0),
    ]
    return f'<div class="card">{"".join(rows)}</div>'


# ---------------------------------------------------------------- to scale
def _strip(told):
    """The calls in order on one line, to scale."""
    width, x, parts = 1270, 0.0, []
    spent = sum(c.total for c in told.top) or 1
    places = {place: i for i, (place, _) in enumerate({c.place[:3]: 0 for c in told.top}.items())}
    for call in told.top[:ROW_LIMIT]:
        w = width * call.total / spent
        words = f"{call.op}  {duration(call.total)}\n{lights.source_line(call.place)}"
        shade = 1 if places[call.place[:3]] % 2 == 0 else 0.62
        colour = "--graph" if call.engine else "--kernel"
        parts.append(
            f'<rect x="{x:.2f}" y="4" width="{max(w - .6, .4):.2f}" height="30" fill="var({colour})" opacity="{shade}"><title>'
            f"{_e(words)}</title></rect>"
        )
        name = call.op.split("::")[-1].split(".")[0]
        if w > 7 * len(name) + 8:
            parts.append(f'<text x="{x + 5:.1f}" y="23" style="fill:#fff;pointer-events:none">{_e(name)}</text>')
        x += w
    return (
        f'<svg viewBox="0 0 {width} 40" width="100%" role="img" aria-label="calls in order, to scale">{"".join(parts)}</svg>'
        '<p class="legend soft"><span><i class="kernel"></i>called from Python (shades alternate with the lines)</span>'
        '<span><i class="graph"></i>called by the engine, backward</span></p>'
    )


# ---------------------------------------------------------------- calls
def _kernel_cell(call):
    if call.failed:
        return f'<span class="bad">{_e(call.failed)}</span>'
    notes = call.facts["notes"].splitlines()
    first = f'<div class="lib">{_e(notes[0].split(":")[0])}</div>' if notes else ""
    return first + f'<span class="mono soft">{_e(lights.kernel_words(call))}</span>'


def _node_cell(call):
    if call.node is None:
        return '<span class="soft">none</span>'
    name, saved, own = call.node
    tensors = [(field, n) for field, _, n, _ in saved if n]
    words = ", ".join(f"{_e(field)} {size(n)}" for field, n in tensors) or "saved no tensor"
    return f'<b style="color:var(--graph)">{_e(name)}</b><br><span class="soft">{words}</span>'


def _chips(call):
    out = []
    for key, state, who, what in lights.keys_table(call):
        if state in ("passed", "kernel"):
            out.append(
                f'<span class="chip {"on" if state == "passed" else "end"}" title="{_e(what)}; asked for by {_e(who)}">{key}</span>'
            )
        elif state == "refused" and who:
            out.append(f'<span class="chip soft" title="{_e(what)}"><s>{key}</s></span>')
    return "".join(out)


def _memory(call):
    facts = call.facts
    borrowed = [whose for _, whose in call.results if whose.startswith("in the bytes of ")]
    head = f"<b>{size(call.made)}</b> new" if call.made else f"{_e(borrowed[0])}" if borrowed else '<span class="soft">nothing new</span>'
    blocks = (
        [f"{facts['reused']} large reused"] * (facts["reused"] > 0)
        + [f"{facts['from_system']} from the system"] * (facts["from_system"] > 0)
        + [f"{facts['small'][0]} small reused"] * (facts["small"][0] > 0)
    )
    return head + (f'<br><span class="soft">{", ".join(blocks)}</span>' if blocks else "")


def _way(call):
    words = lights.parser_words(call)
    head, _, rest = words.partition(":")
    return f"<b>{_e(head)}</b>" + (f'<br><span class="soft">{_e(rest)}</span>' if rest else "")


def _bar(call, told):
    scale = 118 / max(max(c.total for c in told.top), 1)
    inner = sum(p.total for p in call.parts)
    widths = ((call.layers, "var(--layers)"), (inner, "var(--line)"), (call.kernel, "var(--kernel)"))
    return (
        '<div class="bar">'
        + "".join(f'<i style="width:{max(ns * scale, .7 if ns else 0):.1f}px;background:{colour}"></i>' for ns, colour in widths)
        + "</div>"
    )


def _table(rows, classes=None):
    return (
        ('<table class="keys">' if classes else "<table>")
        + "".join(
            f'<tr class="{classes[i] if classes else ""}">' + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>"
            for i, row in enumerate(rows)
        )
        + "</table>"
    )


def _more(call):
    keys = lights.keys_table(call)
    words = {"passed": "passed", "kernel": "kernel", "refused": "refused", "skipped": "skipped"}
    left = (
        "<h3>Arguments</h3>"
        + (_table(call.args) if call.args else "<p>none</p>")
        + "<h3>Results</h3>"
        + _table(call.results or [("none",)])
    )
    middle = "<h3>Keys, highest first: who asked, what ran, why others did not</h3>" + _table(
        [(key, words[state], who, what) for key, state, who, what in keys], [f"state-{state}" for _, state, _, _ in keys]
    )
    right = "<h3>Time of its own</h3>" + _table(
        [("dispatcher and layers", duration(call.layers)), ("kernel", duration(call.kernel))]
        + ([("its parts", duration(sum(p.total for p in call.parts)))] if call.parts else [])
    )
    if call.facts["notes"]:
        right += "<h3>Who computed it</h3>" + "".join(f"<p>{_e(note)}</p>" for note in call.facts["notes"].splitlines())
    refused = lights.parser_refusals(call)
    if refused:
        right += "<h3>Overloads that refused first</h3>" + "".join(f"<p>{_e(line)}</p>" for line in refused)
    if call.node:
        right += f"<h3>{_e(call.node[0])} saved</h3>" + _table(
            [
                (field, text, size(n) if n else "", f"bytes of {whose}" if whose and whose != "the result" else whose)
                for field, text, n, whose in call.node[1]
            ]
            or [("nothing",)]
        )
    right += f"<h3>Memory</h3><p>{_e(lights.memory_words(call))}</p>"
    if call.place[3]:
        right += "<h3>Ember's Python in between</h3>" + "".join(f'<p class="mono">{_e(line)}</p>' for line in call.place[3])
    return f'<div class="more"><div>{left}</div><div>{middle}</div><div>{right}</div></div>'


def _row(call, depth, told):
    name = call.op.replace("aten::", "")
    arguments = ", ".join(text for _, text in call.args if text != "None")
    arguments = arguments if len(arguments) <= 110 else arguments[:107] + "..."
    cells = (_way(call), _chips(call), _kernel_cell(call), _memory(call), _node_cell(call))
    return (
        f'<details><summary class="row"><div style="padding-left:{18 * depth}px"><div class="op mono">{_e(name)}</div>'
        f'<div class="args mono">{_e(arguments)}</div></div>{"".join(f"<div>{cell}</div>" for cell in cells)}'
        f'<div class="time">{duration(call.total)}{_bar(call, told)}</div></summary>{_more(call)}</details>'
    )


def _groups(told):
    out, rows = [], 0
    for place, calls in lights.lines(told.top):
        if rows >= ROW_LIMIT:
            break
        total = sum(c.total for c in calls)
        out.append(
            f'<div class="card group"><div class="src"><span class="where">{_e(os.path.basename(place[0]))}:{place[1]}</span>'
            f'<code>{_e(lights.source_line(place) or place[2])}</code><span'
            f' class="where">{_plural(len(calls), "call")}, {duration(total)}</span></div><div class="head"><div>call</div><div>came in'
            " by</div><div>keys passed</div><div>kernel</div><div>memory</div><div>node recorded</div><div"
            ' style="text-align:right">time</div></div>'
        )
        stack = [(c, 0) for c in reversed(calls)]
        while stack and rows < ROW_LIMIT:
            call, depth = stack.pop()
            out.append(_row(call, depth, told))
            rows += 1
            stack.extend((c, depth + 1) for c in reversed(call.parts))
        out.append("</div>")
    left = len(told.calls) + told.dropped - rows
    if left > 0:
        out.append(f'<p class="soft">{left:,} more calls are not drawn.</p>')
    return "".join(out)


def render(told):
    fixed = told.fixed
    facts = (
        f"{_plural(len(told.calls), 'call')} of operators, {_plural(len(told.nodes), 'node')} recorded, "
        f"{duration(told.time)} (one run; what was cold stayed cold)."
    )
    watching = (
        f"Watching took {duration(told.overhead)} more: it is left out of these times. The fixed cost is what one <code>a + b</code> of"
        f" one element takes here, unwatched: {duration(fixed['python'])} in Python and the bridge, {duration(fixed['layers'])} in the"
        f" dispatcher, {duration(fixed['kernel'])} in the kernel's entry, {duration(fixed['autograd'])} more when it is recorded."
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>The fall'
        f" of {_e(told.name)}</title><style>{_style()}</style></head><body><main><h1>The fall of <code"
        f' style="font-size:22px">{_e(told.name)}</code></h1><p>{facts}</p><p class="soft">{watching}</p><h2>The'
        f' floors</h2>{_floors(told)}<p class="soft" style="font-size:12.5px">Bars are shares of the whole time; the upright mark is'
        " where the bar would end if every call cost the fixed cost alone.</p><h2>The calls in order, to"
        f' scale</h2>{_strip(told)}<h2>Line by line</h2><p class="soft">Click a call for its arguments, all keys, what refused and why,'
        f" and what its node saved. Operators inside of an operator stand indented below it.</p>{_groups(told)}</main></body></html>\n"
    )
