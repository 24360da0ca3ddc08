"""ember.fall(fn, *args): runs fn once and tells how each of its calls fell through the floors.

The recorder (python/csrc/fall_py.c) calls `_Recorder.tell` when a call of an operator is over. What that costs is measured
and taken out of every time; what the two layers of the recorder themselves cost is measured on a one-element `a + b`.
"""

import contextlib
import linecache
import os
import re
import sys

import ember
from ember import _C

_KEYS = _C._fall_keys()
_BIT = {name: 1 << i for i, name in enumerate(_KEYS)}
_BACKENDS = _BIT["CPU"] | _BIT["OpenCL"] | _BIT["CUDA"] | _BIT["Meta"]
_OURS = _BIT["Tracer"] | _BIT["Capture"]  # the recorder's own
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LINE_LIMIT = 10_000
FLOORS = ("python", "layers", "kernel")
_REFUSED = re.compile(r"(?:\(|; )([^();:\n]+) refused: ([^();\n]+)")
_fixed = None


class Call:
    """One call of an operator. Times in nanoseconds, the recorder's share taken out."""

    def __init__(self):
        self.parts = []        # calls within: of a composite, or of a kernel
        self.node = None       # (name, [(field, text, bytes, whose)], bytes of its own) recorded by this call
        self.failed = None

    @property
    def own(self):
        """Time outside of the parts."""
        return self.layers + self.kernel


class Fall:
    """What `ember.fall` returns: prints as text, shows as a page in notebooks, `save(path)` writes the page."""

    def __init__(self, name, recorder, wall, overhead, result):
        self.name, self.calls, self.wall, self.overhead, self.result = name, recorder.calls, wall, overhead, result
        self.fixed, self.count, self.top_count = recorder.fixed, recorder.count, recorder.top_count
        self.dropped = self.count - len(self.calls)  # of many calls only the first are kept; totals are of all
        self.top = [c for c in self.calls if c.depth == 0]
        self.layers, self.kernel, self.made = recorder.layers, recorder.kernel, recorder.made
        self.python = max(0.0, wall - overhead - recorder.spent - self.top_count * self.fixed["bias_python"])
        self.nodes = [c.node for c in self.calls if c.node]
        self.elsewhere, self.error = 0, None

    @property
    def time(self):
        return self.python + self.layers + self.kernel

    def saved_bytes(self):
        """Bytes that only the recorded nodes keep alive beyond inputs."""
        return sum(node[2] for node in self.nodes)

    def html(self):
        from . import page
        return page.render(self)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return path

    def _repr_html_(self):
        import html
        return f'<iframe style="width:100%;height:700px;border:0" srcdoc="{html.escape(self.html())}"></iframe>'

    def __repr__(self):
        return f"<ember.Fall of {self.name}: {self.count} calls, {len(self.nodes)} nodes, {duration(self.time)}; print() shows it>"

    def __str__(self):
        return "\n".join(_text(self))


# ---------------------------------------------------------------- words
def duration(ns):
    if ns < 1:
        return "under 1 ns" if ns else "0"
    return (f"{ns:.0f} ns" if ns < 1000 else f"{ns / 1e3:.1f} µs" if ns < 1e6 else f"{ns / 1e6:.2f} ms" if ns < 1e9 else
            f"{ns / 1e9:.2f} s")


def size(n):
    return f"{n:,} B" if n < 10_000 else f"{n / 1024:,.1f} KB" if n < 2**20 else f"{n / 2**20:,.1f} MB"


def value_text(v):
    if isinstance(v, ember.Tensor):
        return f"{str(v.dtype)[6:]}[{', '.join(map(str, v.shape))}]"
    if isinstance(v, (list, tuple)) and any(isinstance(x, ember.Tensor) for x in v):
        return "[" + ", ".join(map(value_text, v[:4])) + (", ...]" if len(v) > 4 else "]")
    text = repr(v)
    return text if len(text) <= 40 else text[:37] + "..."


def _place():
    """(file, line, function, [what of Ember's own Python lies between]) of the caller's line."""
    frame, between = sys._getframe(2), []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return code.co_filename, frame.f_lineno, code.co_name, between[::-1]
        owner = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
        name = f"{type(owner).__name__}.{code.co_name}" if owner is not None else code.co_name
        between.append(f"{name} ({code.co_filename[len(_PACKAGE):]}:{frame.f_lineno})")
        frame = frame.f_back
    return "?", 0, "?", between[::-1]


def _tensors(values):
    for v in values:
        if isinstance(v, ember.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)


def _address(t):
    """Where a tensor's storage begins; None without bytes."""
    if t.device.type == "meta" or type(t) is not ember.Tensor and not isinstance(t, ember.nn.Parameter):
        return None
    return t.untyped_storage().data_ptr() or None


_flags = {"composite": 1, "view": 2, "inplace": 4, "out": 8, "factory": 128}


class _Recorder:
    def __init__(self, fixed):
        self.fixed, self.calls, self.waiting, self.seen = fixed, [], {}, set()
        self.count = self.top_count = self.made = 0
        self.layers = self.kernel = self.spent = 0.0

    def tell(self, op, ins, outs, facts):
        call = Call()
        depth = call.depth = facts["depth"]
        call.parts = self.waiting.pop(depth + 1, [])
        call.facts, call.number = facts, self.count
        self.count += 1
        _settle(call, self.fixed)
        self.layers += call.layers
        self.kernel += call.kernel
        if depth == 0:
            self.top_count += 1
            self.spent += call.total
        else:
            self.waiting.setdefault(depth, []).append(call)
        if len(self.calls) >= _LINE_LIMIT:
            return
        self.calls.append(call)
        call.op, call.schema = op._full, op._schema_text
        call.engine = facts["node"] and facts["node"].rpartition("::")[2]
        call.names = _argument_names(op._schema_text)
        call.place = _place()
        call.args, call.results, call.made = [], [], 0
        if ins is None:
            call.failed = outs.partition("\n")[0]
        else:
            self._values(call, ins, outs)
        self.made += 0 if call.parts else call.made

    def _values(self, call, ins, outs):
        owners = {}
        for name, v in zip(call.names, ins):
            call.args.append((name, value_text(v)))
            for t in _tensors([v]):
                owners.setdefault(_address(t), name)
        owners.pop(None, None)
        held = set(owners)
        for v in outs:
            for t in _tensors([v]):
                address = _address(t)
                new = address is not None and address not in owners
                whose = "new" if new else "no bytes" if address is None else f"in the bytes of {owners[address]}"
                call.results.append((value_text(t), whose))
                if new:
                    call.made += t.untyped_storage().nbytes()
                    owners[address] = "the result"
            if not isinstance(v, (ember.Tensor, list, tuple)):
                call.results.append((value_text(v), ""))
        if call.facts["keys"] & _BIT["Autograd"] or call.facts["flags"] & _flags["composite"]:
            for t in _tensors(outs):
                self._node(call, t.grad_fn, owners, held)

    def _node(self, call, node, owners, held):
        if node is None:
            return
        key = (type(node).__name__, node._sequence_nr()) if hasattr(node, "_sequence_nr") else id(node)
        if key in self.seen:
            return
        self.seen.add(key)
        saved, own = saved_fields(node, owners, held)
        call.node = (node.name(), saved, own)


def fields_of(kind, known={}):
    """Names of the saved fields of a class of nodes."""
    if kind not in known:
        known[kind] = [field for field in dir(kind) if field.startswith("_saved_") or field == "saved_tensors"]
    return known[kind]


def saved_fields(node, owners=None, held=()):
    """[(field, text, bytes, whose bytes)] of a node, and how many bytes live only because it saved them."""
    saved, own, counted = [], 0, set(held)
    for field in fields_of(type(node)):
        label = field.replace("_saved_", "")
        try:
            value = getattr(node, field)
        except RuntimeError:
            saved.append((label, "released or overwritten since", 0, ""))
            continue
        nbytes, whose = 0, ""
        for t in _tensors([value]):
            nbytes += t.numel() * t.element_size()
            address = _address(t)
            whose = (owners or {}).get(address, "")
            if address is not None and address not in counted:
                counted.add(address)
                own += t.untyped_storage().nbytes()
        saved.append((label, value_text(value), nbytes, whose))
    return saved, own


def _argument_names(schema):
    inside, depth, names, word = schema[schema.index("(") + 1:schema.rindex(" ->")].rstrip()[:-1], 0, [], ""
    for c in inside + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            if word.strip() not in ("*", ""):
                names.append(word.split("=")[0].split()[-1])
            word = ""
        else:
            word += c
    return names


# ---------------------------------------------------------------- what watching costs
def _plus(a, b, n):
    now, best = _C._profile_now, float("inf")
    for _ in range(15):  # short and often: some of them are not interrupted
        t0 = now()
        for _ in range(n):
            a + b
        t1 = now()
        for _ in range(n):
            pass
        best = min(best, (2 * t1 - t0 - now()) / n)
    return best


def fixed_cost():
    """ns that each floor costs one a + b of one element, and what the recorder adds to a call on each; measured once."""
    global _fixed
    if _fixed is None:
        a, b, n = ember.ones(1), ember.ones(1), 300
        grad = ember.ones(1, requires_grad=True)
        whole = _plus(a, b, n)
        top, kernel = (min(x) for x in zip(*(_C._fall_fixed_cost(a, b, n) for _ in range(15))))
        above = min(_C._fall_fixed_cost(grad, b, n)[0] for _ in range(15))
        seen = []
        note = seen.append
        _C._fall_start(lambda op, ins, outs, facts: note((facts["total"], facts["kernel"])))
        t0 = _C._profile_now()
        for _ in range(300):
            a + b
        wall = _C._profile_now() - t0
        overhead, _ = _C._fall_stop()
        totals, kernels = (sorted(x)[len(seen) // 2] for x in zip(*seen))
        python = (wall - overhead - sum(x[0] for x in seen)) / len(seen)
        _fixed = {
            "python": max(whole - top, 0.0), "layers": max(top - kernel, 0.0), "kernel": kernel, "autograd": max(above - top, 0.0),
            "bias_python": max(python - (whole - top), 0.0), "bias_layers": max(totals - kernels - (top - kernel), 0.0),
            "bias_kernel": max(kernels - kernel, 0.0)}
    return _fixed


def _settle(call, fixed):
    """Times of a call on its floors, without the recorder's share; its parts were settled before."""
    facts = call.facts
    parts = sum(p.facts["total"] for p in call.parts)
    kernel, layers = facts["kernel"], facts["total"] - facts["kernel"]
    if kernel:
        kernel -= parts
    else:
        layers -= parts
    if not call.parts and facts["flags"] & _flags["composite"]:
        kernel, layers = layers, 0
    bridge = len(call.parts) * fixed["bias_python"]  # arguments of parts are boxed for the recorder too
    call.kernel = max(0.0, kernel - fixed["bias_kernel"] - (bridge if facts["kernel"] else 0))
    call.layers = max(0.0, layers - fixed["bias_layers"] - (0 if facts["kernel"] else bridge))
    call.total = call.kernel + call.layers + sum(p.total for p in call.parts)


def fall(fn, *args, html=None, **kwargs):
    """Runs `fn(*args, **kwargs)` once and tells the fall of its calls through the floors.

    Returns a Fall: print it, or `.save("fall.html")` for a page; `html="fall.html"` writes it at once. `.result` is what fn
    returned. Only calls of this thread are seen, gradients' included. An exception of fn's passes through, with what was seen
    until then as its `fall`.
    """
    recorder, result, error = _Recorder(fixed_cost()), None, None
    _C._fall_start(recorder.tell)
    begin = _C._profile_now()
    try:
        result = fn(*args, **kwargs)
    except BaseException as raised:
        error = raised
        raise
    finally:
        end = _C._profile_now()
        overhead, elsewhere = _C._fall_stop()
        name = getattr(fn, "__qualname__", type(fn).__name__)
        told = Fall(name, recorder, end - begin, overhead, result)
        told.elsewhere = elsewhere
        if error is not None:
            told.error = f"{type(error).__name__}: {error}".partition("\n")[0]
            with contextlib.suppress(AttributeError):  # some exceptions take no attributes
                error.fall = told
            error = None  # or this frame and the exception would keep each other
        if html is not None:
            told.save(html)
    return told


# ---------------------------------------------------------------- the floors of one call
def parser_words(call):
    came = call.facts["came"]
    if call.engine:
        return f"the engine: formula of {call.engine}"
    if came is None:
        return "the operator above: called from C"
    if came == "fast":
        return "fast slot: plain tensors, no parsing"
    if came == "direct":
        return "hand-written entry: no table parser"
    name, index, count, _ = came
    return f"table parser: {name}(), overload {index + 1} of {count}"


def paths(call):
    """What the kernel called the paths that it took, in order: the words before each note's colon."""
    return list(dict.fromkeys(note.partition(":")[0].partition(";")[0] for note in call.facts["notes"].splitlines() if note != "..."))


def refusals(call):
    """[(path or library, why)] that the kernel did not take. Threads are told apart from paths."""
    found = _REFUSED.findall(call.facts["notes"])
    return [(other, why) for other, why in found if other not in ("more", "threads")]


def module_of(call):
    """The innermost method of an Ember module or optimizer between the line and the call."""
    names = [line.partition(" (")[0] for line in call.place[3]]
    return next((name for name in reversed(names) if "." in name and not name.endswith((".__call__", "._call_impl"))), "")


def path_words(call):
    words = ", ".join(paths(call))
    return words + "".join(f"; {other} refused: {why}" for other, why in refusals(call)[:2])


def parser_refusals(call):
    came = call.facts["came"]
    return came[3].splitlines() if isinstance(came, tuple) else []


def keys_table(call):
    """[(key, state, who, what)], highest first: state is passed, kernel, skipped or refused."""
    facts, rows, chosen = call.facts, [], False
    givers = dict.fromkeys(_KEYS, "")
    for name, keys in zip(call.names, facts["argument_keys"]):
        for key in _KEYS:
            if keys & _BIT[key]:
                givers[key] += (", " if givers[key] else "") + name
    for key in reversed(_KEYS):
        bit = _BIT[key]
        if bit & _OURS:
            continue
        asked = givers[key] or ("this thread" if facts["include"] & bit else "")
        slot = facts["slots"][_KEYS.index(key)]
        if facts["keys"] & bit and not (bit & _BACKENDS and chosen):
            chosen = bool(bit & _BACKENDS)
            rows.append((key, "kernel" if chosen else "passed", asked or "no tensor: the default", slot))
        elif facts["exclude"] & bit and asked:
            rows.append((key, "refused", asked, "switched off in this thread" + (" (no_grad)" if key == "Autograd" else "")))
        elif asked:
            rows.append((key, "skipped", asked, "nothing to do for this operator: not in its mask"))
        elif slot and not key == "PythonDispatch":
            rows.append((key, "refused", "", f"{slot} was there, but no argument has this key"))
    return rows


def kernel_words(call):
    if call.failed:
        return "failed: " + call.failed
    for key, state, _, slot in keys_table(call):
        if state == "kernel":
            if call.facts["flags"] & _flags["composite"]:
                return f"{slot}: " + ("made of the operators below" if call.parts else "C code, no other operator")
            return f"{slot} ({_C._build_info()['isa']})" if key == "CPU" else slot
    return "none"


def memory_words(call):
    facts, words = call.facts, []
    if call.made:
        words.append(f"{size(call.made)} of results")
    elif call.results and any("in the bytes" in whose for _, whose in call.results):
        words.append("no bytes: " + next(whose for _, whose in call.results if "in the bytes" in whose))
    if facts["reused"]:
        words.append(f"{facts['reused']} large block{'s' * (facts['reused'] > 1)} reused")
    if facts["from_system"]:
        words.append(f"{facts['from_system']} from the system")
    if facts["small"][0]:
        words.append(f"{facts['small'][0]} small block{'s' * (facts['small'][0] > 1)} ({facts['small'][1]} B) reused")
    return ", ".join(words) or "nothing"


def node_words(call):
    if call.node is None:
        return ""
    name, saved, own = call.node
    fields = ", ".join(f"{field} {text}" + (f" {size(n)}" if n else "") for field, text, n, _ in saved)
    return name + (f" saved {fields}" if saved else " saved nothing") + (f"; keeps {size(own)} alive" if own else "")


def source_line(place):
    return linecache.getline(place[0], place[1]).strip()


def lines(calls):
    """Top-level calls by the line of Python that made them, in the order in which lines were first reached: [(place, [call])]."""
    groups = {}
    for call in calls:
        groups.setdefault(call.place[:3], (call.place, []))[1].append(call)
    return list(groups.values())


def _alike(call):
    """What two calls must share to be told as one."""
    facts = call.facts
    return (call.op, tuple(call.args), call.engine, facts["came"], facts["keys"], facts["notes"], call.failed, call.node and call.node[0],
            tuple(map(_alike, call.parts)))


def merged(calls):
    """[[first call, how often, time of all]]: calls of a loop that did the same are told once."""
    rows = {}
    for call in calls:
        row = rows.setdefault(_alike(call), [call, 0, 0.0])
        row[1] += 1
        row[2] += call.total
    return list(rows.values())


def _text(told):
    fixed, n = told.fixed, max(told.count, 1)
    engine = sum(1 for c in told.top if c.engine)
    yield (f"the fall of {told.name}: {told.count} calls ({told.top_count - engine} from Python, {engine} from the engine, the rest "
           f"inside of them), {len(told.nodes)} nodes recorded, {size(told.made)} of results, {duration(told.time)}")
    for floor, words in zip(FLOORS, ("Python and the bridge", "dispatcher and layers", "kernels")):
        spent = getattr(told, floor)
        yield (f"  {words:<22} {duration(spent):>10} {spent / max(told.time, 1):>5.0%}   {duration(spent / n):>9} a call; the fixed cost "
               f"(a + b, 1 element) is {duration(fixed[floor])}" + (f", {duration(fixed['autograd'])} more when recorded" *
                                                                    (floor == "layers")))
    if told.error:
        yield f"  it raised {told.error}"
    if told.elsewhere:
        yield f"  {told.elsewhere:,} calls of other threads were not watched"
    yield f"  watching took {duration(told.overhead)} more, which is not in these times"
    for place, calls in lines(told.top):
        yield ""
        yield f"{os.path.basename(place[0])}:{place[1]}  {source_line(place) or place[2]}"
        stack = [(*row, 1) for row in reversed(merged(calls))]
        while stack:
            call, times, total, depth = stack.pop()
            pad = "  " * depth
            arguments = ", ".join(text for _, text in call.args)
            yield f"{pad}{call.op}({arguments})  {duration(total)}" + (f" for {times:,} calls" if times > 1 else "")
            yield f"{pad}    via     {parser_words(call)}"
            passed = " > ".join(f"{key} (asked for by {who})" for key, state, who, _ in keys_table(call) if state in ("passed", "kernel"))
            yield f"{pad}    keys    {passed}"
            notes = call.facts["notes"].replace("\n", "; ")
            yield f"{pad}    kernel  {kernel_words(call)}" + (f"; {notes}" if notes else "")
            yield f"{pad}    memory  {memory_words(call)}"
            if call.node:
                yield f"{pad}    node    {node_words(call)}"
            stack.extend((c, 1, c.total, depth + 1) for c in reversed(call.parts))
    if told.dropped:
        yield f"({told.dropped:,} more calls are counted above, and not told: only the first {_LINE_LIMIT:,} are kept)"
