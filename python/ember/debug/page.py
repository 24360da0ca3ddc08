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
        for name in lights.paths(call):
            libraries[name] = libraries.get(name, 0) + 1
    return ways, keys, libraries


def _share(part, whole):
    share = part / max(whole, 1)
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"


def _floor(number, colour, name, what, happened, told, floor, calls):
    bar = ""
    if floor:
        spent = getattr(told, floor)
        fixed = told.fixed[floor] * calls
        width, tick = spent / max(told.time, 1), min(fixed / max(told.time, 1), 1)
        bar = (
            f'<div class="track" title="{_e(duration(spent))}, the fixed cost would be {_e(duration(fixed))}">'
            f'<i class="{colour}" style="width:{100 * width:.2f}%"></i><u style="left:{100 * tick:.2f}%"></u></div>'
            f'<span class="soft small"><b style="color:var(--ink)">{duration(spent)}</b>, {_share(spent, told.time)} of all; '
            f"{_plural(calls, 'call')} of <code>a + b</code>: {duration(fixed) if fixed else 'too little to tell'}</span>"
        )
    return (
        f'<div class="floor"><div class="num {colour}">{number}</div><div><b class="name">{name}</b><span class="soft small">{what}'
        f"</span></div><div>{happened}</div><div>{bar}</div></div>"
    )


def _floors(told):
    ways, keys, libraries = _counts(told)
    python = sum(ways.values())
    engine = sum(1 for c in told.top if c.engine)
    inner = told.count - told.top_count
    places = {c.place[:2] for c in told.top}
    passed = ", ".join(f"{key} {n}" for key, n in sorted(keys.items(), key=lambda item: -item[1])) or "none: straight to the kernels"
    kernels = sum(1 for c in told.calls if not c.parts)
    reused = sum(c.facts["reused"] for c in told.top)
    system = sum(c.facts["from_system"] for c in told.top)
    small = sum(c.facts["small"][0] for c in told.calls if not c.parts)
    by_library = ", ".join(f"{_e(name)} {n}" for name, n in sorted(libraries.items(), key=lambda item: -item[1])) or "none told its path"
    from_python = (
        f"{_plural(python, 'call')} made by {_plural(len(places), 'line')} of Python; "
        + (f"the engine made {engine:,} more (backward), " if engine else "")
        + f"operators {inner:,} inside of themselves"
    )
    ways_in = f"fast slot {ways['fast']}, table parser {ways['parser']}, hand-written entry {ways['direct']} (its time is in floor 1)"
    layers = f"layers passed: {_e(passed)}"
    kept = size(told.saved_bytes())
    recorded = f"{_plural(len(told.nodes), 'node')} recorded, keeping {kept} alive beyond the inputs (its time is in floor 3)"
    blocks = f"{size(told.made)} of results; large blocks: {reused} reused, {system} from the system; {small} small blocks reused"
    ran = f"{_plural(kernels, 'kernel')} ran. Paths taken: {by_library}"
    rows = [
        _floor(1, "python", "Python", "your lines, and Ember's nn and optim", from_python, told, "python", told.top_count),
        _floor(2, "python", "The bridge", "Python objects become C values", ways_in, told, None, 0),
        _floor(3, "layers", "The dispatcher", "keys decide which layers see a call", layers, told, "layers", told.count),
        _floor(4, "graph", "The graph", "autograd writes a record", recorded, told, None, 0),
        _floor(5, "kernel", "The kernels", "one loop for one device and dtype", ran, told, "kernel", kernels),
        _floor(6, "memory", "Memory", "the allocator's blocks", blocks, told, None, 0),
    ]
    return f'<div class="card">{"".join(rows)}</div>'


# ---------------------------------------------------------------- to scale
def _strip(told):
    """The top-level calls in order on one line, to scale."""
    parts, rest = [], sum(c.total for c in told.top[ROW_LIMIT:])
    spent = sum(c.total for c in told.top) or 1
    places = {place: i for i, (place, _) in enumerate({c.place[:3]: 0 for c in told.top}.items())}
    for call in told.top[:ROW_LIMIT]:
        share = call.total / spent
        words = f"{call.op}  {duration(call.total)}\n{lights.source_line(call.place)}"
        kind = ("graph" if call.engine else "kernel") + (" pale" if places[call.place[:3]] % 2 else "")
        name = call.op.split("::")[-1].split(".")[0]
        room = 7.2 * len(name) + 10
        label = "" if share * 1250 < room else f"<b>{_e(name)}</b>" if share * 370 > room else f'<b class="wide">{_e(name)}</b>'
        parts.append(f'<i class="{kind}" style="flex:{share:.5f} 0 0" title="{_e(words)}">{label}</i>')
    if rest:
        parts.append(f'<i class="inner" style="flex:{rest / spent:.5f} 0 0" title="{_e(len(told.top) - ROW_LIMIT)} more calls"></i>')
    return (
        f'<div class="strip" role="img" aria-label="calls in order, to scale">{"".join(parts)}</div>'
        f'<p class="legend soft"><span>from left to right: {duration(spent)}</span><span><i class="kernel"></i>called from Python</span>'
        '<span><i class="graph"></i>called by the engine, backward</span><span>a paler shade: the next line of Python</span></p>'
    )


# ---------------------------------------------------------------- where to look
def _same_rows(call, like, found):
    found[call] = like
    for part, of in zip(call.parts, like.parts):
        _same_rows(part, of, found)


def _first(told):
    """The calls that took longest by themselves, with who computed them."""
    first = {}  # where a call's row is: calls that are alike have one
    for _, calls in lights.lines(told.top):
        for call in calls:
            _same_rows(call, first.setdefault(lights._alike(call) + call.place[:3], call), first)
    dearest = sorted(told.calls, key=lambda c: -c.own)[:5]
    out = []
    for call in dearest:
        if call.own * 100 < told.time and out:
            break
        node = f" for {_e(call.engine)}" if call.engine else f" in {_e(lights.module_of(call))}" if lights.module_of(call) else ""
        paths = lights.path_words(call)
        line = lights.source_line(call.place) or call.place[2]
        out.append(
            f'<a class="first" href="#c{first.get(call, call).number}">'
            f'<div class="when"><b>{duration(call.own)}</b>, {_share(call.own, told.time)}'
            f'<div class="track"><i class="kernel" style="width:{min(100 * call.own / max(told.time, 1), 100):.2f}%"></i></div></div>'
            f'<div><b class="mono">{_e(call.op.replace("aten::", ""))}</b><span class="soft small">{node}</span></div>'
            f'<div><code>{_e(line)}</code> <span class="soft small">{_e(os.path.basename(call.place[0]))}:{call.place[1]}</span></div>'
            f'<div class="small">{_e(paths) or _e(lights.kernel_words(call))}</div></a>'
        )
    if not out:
        return '<div class="card"><p class="first">No operator was called.</p></div>'
    return f'<div class="card">{"".join(out)}</div>'


_WORDS = (
    ("A call", "one operator of the table, such as <code>aten::addmm</code>. A composite operator is made of others, which stand indented"
     " below it. Times of a line are those of its calls without the Python around them."),
    ("Floors", "what a call passes on its way down: Python, the bridge to C, the dispatcher, autograd's layer, the kernel, the allocator."),
    ("Came in by", "<b>fast slot</b>: plain tensors, nothing was parsed. <b>Table parser</b>: arguments were matched with the operator's"
     " overloads. <b>Hand-written entry</b>: a method of its own. <b>The operator above</b>: called from C. <b>The engine</b>: backward,"
     " for the node named."),
    ("Keys passed", '<span class="chip on">Autograd</span> a layer that ran on the way down, <span class="chip end">CPU</span> the backend'
     " whose kernel ended the fall, <span class=\"chip\"><s>struck</s></span> asked for, but switched off (by <code>no_grad</code>). Alias"
     " keeps views and their bytes apart; Autograd records."),
    ("Kernel", "who computed it, by which path, and why another path was not taken."),
    ("Memory", "bytes of new results, or whose bytes a view shares; blocks that were reused, and blocks that the system had to give."
     " 1 KB is 1,024 B."),
    ("Node recorded", "what backward will run for this call, and the tensors that it keeps until then."),
    ("Time", '<i class="layers sw"></i> dispatcher and layers, <i class="kernel sw"></i> the kernel, <i class="inner sw"></i> calls inside.'
     " 1 ms is 1,000 \u00b5s, 1 \u00b5s is 1,000 ns. One run: what was cold stayed cold."),
)


def _key(told):
    fixed = told.fixed
    cost = (
        f"what one <code>a + b</code> of one element takes here, unwatched: {duration(fixed['python'])} in Python and the bridge, "
        f"{duration(fixed['layers'])} in the dispatcher, {duration(fixed['kernel'])} in the kernel's entry, {duration(fixed['autograd'])}"
        f" more when it is recorded. Floors are compared with that: the upright mark on a bar. Watching took {duration(told.overhead)}"
        " more, which is left out of all times. Very short calls still come out dearer than unwatched ones: the recorder runs between"
        " them, and cools the caches."
    )
    rows = "".join(f"<dt>{name}</dt><dd>{words}</dd>" for name, words in (*_WORDS, ("The fixed cost", cost)))
    return f'<details class="card key"><summary>How to read this page: its words, colours and units</summary><dl>{rows}</dl></details>'


# ---------------------------------------------------------------- calls
def _kernel_cell(call):
    if call.failed:
        return f'<span class="bad">failed: {_e(call.failed)}</span>'
    heads = lights.paths(call)
    if heads:
        refused = lights.refusals(call)[:1]
        why = "".join(f'<br><span class="soft">{_e(other)} refused: {_e(reason)}</span>' for other, reason in refused)
        return f'<span class="lib">{_e(", ".join(heads))}</span>{why}'
    if call.parts and call.facts["flags"] & lights._flags["composite"]:
        return f'<span class="soft">made of the {_plural(len(call.parts), "call")} below</span>'
    return f'<span class="soft">{_e(lights.kernel_words(call))}</span>'


def _soft_breaks(name):
    """Room to break a long name where its words meet."""
    return "".join("\u200b" + c if c.isupper() and i else c for i, c in enumerate(name))


def _node_cell(call):
    if call.node is None:
        return '<span class="soft">none</span>'
    name, saved, own = call.node
    tensors = [(field, n) for field, _, n, _ in saved if n]
    words = ", ".join(f"{_e(field)} {size(n)}" for field, n in tensors)
    saved = "saved " + words if words else "saved no tensor"
    return f'<span class="rec">{_e(_soft_breaks(name))}</span><br><span class="soft">{saved}</span>'


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


def _bar(call, total, longest):
    if call.total:
        longest = longest * call.total / total  # of many calls the first stands for all
    inner = sum(p.total for p in call.parts)
    parts = ((call.layers, "layers"), (inner, "inner"), (call.kernel, "kernel"))
    return (
        '<div class="bar">'
        + "".join(f'<i class="{kind}" style="width:{100 * ns / longest:.2f}%;min-width:1px"></i>' for ns, kind in parts if ns)
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
        right += "<h3>Who computed it, and who did not</h3>" + "".join(f"<p>{_e(note)}</p>" for note in call.facts["notes"].splitlines())
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


def _row(call, times, total, depth, longest):
    name = call.op.replace("aten::", "")
    arguments = ", ".join(text for _, text in call.args if text != "None")
    arguments = arguments if len(arguments) <= 110 else arguments[:107] + "..."
    cells = zip(
        ("came in by", "keys passed", "kernel", "memory", "node recorded"),
        (_way(call), _chips(call), _kernel_cell(call), _memory(call), _node_cell(call)),
    )
    module = lights.module_of(call) if depth == 0 else ""
    module = f'<div class="args">in {_e(module)}</div>' if module else ""
    often = f'<br><span class="soft">{times:,} times, {duration(total / times)} each</span>' if times > 1 else ""
    return (
        f'<details class="call" id="c{call.number}"><summary class="row" style="--depth:{depth}">'
        f'<div style="padding-left:{18 * depth}px"><div class="op mono">{_e(name)}</div>'
        f'<div class="args mono">{_e(arguments)}</div>{module}</div>'
        f'{"".join(f"""<div data-of="{of}">{cell}</div>""" for of, cell in cells)}'
        f'<div class="time" data-of="time">{duration(total)}{often}{_bar(call, total, longest)}</div></summary>{_more(call)}</details>'
    )


def _groups(told):
    groups = [(place, calls, lights.merged(calls)) for place, calls in lights.lines(told.top)]
    longest = max((total for _, _, rows in groups for _, _, total in rows), default=0) or 1
    out, drawn, rows = [], 0, 0
    for place, calls, alike in groups:
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
        stack = [(*row, 0) for row in reversed(alike)]
        while stack and rows < ROW_LIMIT:
            call, times, total, depth = stack.pop()
            out.append(_row(call, times, total, depth, longest))
            rows += 1
            stack.extend((c, 1, c.total, depth + 1) for c in reversed(call.parts))
        drawn += len(calls)
        out.append("</div>")
    left = told.top_count - drawn
    if left > 0:
        out.append(f'<p class="soft">Not drawn, but in the totals: {_plural(left, "more call")} from Python and the engine.</p>')
    return "".join(out)


def _totals(told):
    return (
        f"{_plural(told.count, 'call')} of operators in {duration(told.time)}; {size(told.made)} of results; "
        f"{_plural(len(told.nodes), 'node')} recorded, which keep {size(told.saved_bytes())} alive."
    )


def _warnings(told):
    out = ""
    if told.error:
        out += f'<p class="bad"><b>It raised {_e(told.error)}.</b> This is what was seen until then.</p>'
    if told.elsewhere:
        out += f"<p>{_plural(told.elsewhere, 'call')} of other threads {'was' if told.elsewhere == 1 else 'were'} not watched.</p>"
    return out


def render(told):
    name = _e(told.name.rpartition("<locals>.")[2])
    slowest = max(lights.FLOORS, key=lambda floor: getattr(told, floor))
    words = {"python": "Python and the bridge", "layers": "the dispatcher and its layers", "kernel": "the kernels"}[slowest]
    where = f" {_share(getattr(told, slowest), told.time)} of the time went to {words}." if told.calls else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>The fall of {name}</title><style>{_style()}</style></head><body><main><h1>The fall of <code>{name}</code></h1>"
        "<p>How the calls of one run fell through Ember, from a line of Python to the loop that computed it.</p>"
        f"<p><b>{_totals(told)}</b>{where}</p>{_warnings(told)}{_key(told)}"
        '<h2>Look here first</h2><p class="soft">The calls that took longest by themselves. A click leads to their row.</p>'
        f"{_first(told)}<h2>The floors</h2>{_floors(told)}"
        '<p class="soft small">Bars are shares of the whole time; the upright mark is where the bar would end if every call cost only what'
        f" <code>a + b</code> of one element does.</p><h2>The calls in order, to scale</h2>{_strip(told)}"
        '<h2>Line by line</h2><p class="soft">Click a call for its arguments, all keys, what refused and why, and what its node saved.'
        f" Operators inside of an operator stand indented below it.</p>{_groups(told)}</main></body></html>\n"
    )
