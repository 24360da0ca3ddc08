"""The lights: ember.fall, ember.graph, ember.memory.snapshot, python -m ember.info, the variables of the environment."""

import gc
import glob
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import ember
from ember import _C, _env, nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def step():
    a = ember.ones(3, requires_grad=True)
    b = a * 2
    with ember.no_grad():
        b + 1
    b.view(3, 1).add_(1)
    b.sum().backward()
    return a


def calls(told, name):
    return [call for call in told.calls if call.op == name]


# ---------------------------------------------------------------- fall
def test_fall_returns_what_the_function_returned():
    told = ember.fall(step)
    assert told.result.grad.tolist() == [2, 2, 2]
    assert told.name == "step" and len(told.calls) == len(calls(told, "aten::mul.Tensor")) + sum(
        call.op != "aten::mul.Tensor" for call in told.calls
    )
    assert "aten::mul.Tensor(float32[3]" in str(told) and "test_lights.py" in str(told) and "b = a * 2" in str(told)


def test_fall_names_line_way_keys_kernel_bytes_and_node():
    told = ember.fall(step)
    product = calls(told, "aten::mul.Tensor")[0]
    assert product.place[0] == __file__ and product.place[2] == "step"
    text = str(told)
    assert "Autograd (asked for by self) > CPU (asked for by self, other)" in text
    assert "em_cpu_mul_Tensor" in text and "12 B of results" in text
    assert product.node[0] == "MulBackward0" and [field for field, *_ in product.node[1]] == ["other", "self"]
    engine = [call for call in told.top if call.engine == "MulBackward0"]
    assert [call.op for call in engine] == ["aten::mul.Tensor"]
    nodes = [call.node[0] for call in told.calls if call.node]
    assert nodes[0] == "MulBackward0" and "ViewBackward0" in nodes and "SumBackward0" in nodes


def test_no_grad_is_said_to_have_switched_autograd_off():
    from ember.debug.fall import keys_table

    told = ember.fall(step)
    plus = calls(told, "aten::add.Tensor")[0]
    assert plus.node is None
    rows = {key: (state, who, what) for key, state, who, what in keys_table(plus)}
    assert rows["Autograd"] == ("refused", "self", "switched off in this thread (no_grad)")
    assert rows["CPU"][0] == "kernel" and rows["Alias"][0] == "skipped" and rows["Meta"][0] == "refused"


def test_fast_slots_and_the_table_parser_are_told_apart():
    from ember.debug.fall import parser_refusals, parser_words

    a = ember.ones(2, 2)

    def both():
        a + a
        ember.add(a, a, alpha=2)
        a.sum(0)

    told = ember.fall(both)
    fast, table, total = told.calls
    assert parser_words(fast) == "fast slot: plain tensors, no parsing"
    assert parser_words(table).startswith("table parser: add(), overload ")
    assert parser_words(total) == "table parser: sum(), overload 2 of 2" and total.op == "aten::sum.dim_IntList"
    (why,) = parser_refusals(total)
    assert why.startswith("aten::sum: sum()")


def test_composites_hold_their_parts_and_times_add_up():
    model = nn.Linear(4, 2)
    told = ember.fall(model, ember.ones(3, 4))
    (linear,) = told.top
    assert linear.op == "aten::linear" and [part.op for part in linear.parts] == ["aten::t", "aten::addmm"]
    assert linear.total == pytest.approx(linear.own + sum(part.total for part in linear.parts))
    assert told.time == pytest.approx(told.python + sum(call.own for call in told.calls))
    assert any("Linear.forward" in line for line in linear.place[3])


def test_the_product_says_who_computed_it():
    a, small = ember.ones(100, 100), ember.ones(3, 3)
    told = ember.fall(lambda: (a @ a, small @ small))
    large, tiny = (call.facts["notes"] for call in calls(told, "aten::mm"))
    assert tiny.startswith("Ember's blocks") and "OpenBLAS refused: too small" in tiny
    if _C._library_info()["OpenBLAS"] is None:
        assert "not found" in large
    else:
        assert large.startswith("OpenBLAS: ")


def test_a_failing_call_is_told_and_its_exception_passes():
    told = []

    def fails():
        try:
            ember.ones(2) + ember.ones(3)
        except RuntimeError as error:
            told.append(str(error))

    seen = ember.fall(fails)
    assert seen.calls[-1].failed.startswith("The size of tensor a (2) must match the size of tensor b (3)")
    assert told[0].startswith(seen.calls[-1].failed) and "failed: The size of tensor" in str(seen)
    with pytest.raises(ZeroDivisionError):
        ember.fall(lambda: 1 / 0)
    assert (ember.ones(2) + 1).tolist() == [2, 2]  # and nothing stays switched on
    assert ember.fall(lambda: ember.ones(2)).calls[0].op == "aten::ones"


def test_a_fall_inside_of_a_fall_is_refused():
    with pytest.raises(RuntimeError, match="a recording is running"):
        ember.fall(lambda: ember.fall(step))
    assert len(ember.fall(step).calls) > 4


def test_watching_is_not_in_the_times():
    """One a + b, watched, is told to cost about what it costs: far less than watching does."""
    a = ember.ones(1)
    for _ in range(3):
        told = ember.fall(lambda: a + a)
    assert told.calls[0].total < told.overhead / 2
    assert told.fixed["kernel"] > 0 and told.fixed["autograd"] > 0


def test_fall_keeps_nothing_alive():
    gc.collect()
    ember.fall(step)
    before = ember.memory.live_objects()
    for _ in range(3):
        ember.fall(step)
    gc.collect()
    after = ember.memory.live_objects()
    assert {kind: after[kind] - before[kind] for kind in ("TENSOR", "STORAGE", "NODE")} == {"TENSOR": 0, "STORAGE": 0, "NODE": 0}


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_one_file(tmp_path):
    path = tmp_path / "fall.html"
    told = ember.fall(step, html=path)
    text = path.read_text(encoding="utf-8")
    page = _Links()
    page.feed(text)
    assert page.open == [] and "script" not in page.tags and "url(" not in text
    assert page.links and all(link.startswith("#c") and f'id="{link[1:]}"' in text for link in page.links)
    assert page.tags.count("details") == len(told.calls) + 1  # and how to read it
    for words in ("The floors", "Look here first", "How to read this page", "MulBackward0", "b = a * 2",
                  "switched off in this thread (no_grad)"):
        assert words in text
    assert told._repr_html_().startswith("<iframe")


def browser():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def chromium(folder, width, height, *more):
    command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    done = subprocess.run(
        [*command, f"--user-data-dir={folder / 'profile'}", *more], check=True, timeout=120, capture_output=True, text=True
    )
    return done.stdout


_MEASURE = """<script>
for (const d of document.querySelectorAll("details")) d.open = true;
const wide = [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".strip"));
document.title = `${innerWidth} ${document.documentElement.scrollWidth} ${wide.map(e => e.className || e.tagName)}`;
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine (apt install chromium)")
def test_a_browser_draws_the_page(tmp_path):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 4))
    x = ember.randn(8, 1, 8, 8)
    told = ember.fall(lambda: model(x).sum().backward(), html=tmp_path / "fall.html")
    drawn = {}
    for name, more in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        chromium(tmp_path, 1360, 1500, *more, f"--screenshot={tmp_path / name}.png", f"file://{tmp_path / 'fall.html'}")
        drawn[name] = (tmp_path / f"{name}.png").read_bytes()
        assert drawn[name][:4] == b"\x89PNG" and len(drawn[name]) > 60_000, "the page is empty"  # an empty one takes 9 KB
    assert drawn["light"] != drawn["dark"]
    said = chromium(tmp_path, 1360, 1500, "--dump-dom", f"file://{tmp_path / 'fall.html'}")
    assert "AddmmBackward0" in said and said.count("<details") == len(told.calls) + 1
    (tmp_path / "measure.html").write_text(told.html().replace("</body>", _MEASURE + "</body>"), encoding="utf-8")
    for width in (1360, 800, 500):  # with everything open, nothing sticks out; Chromium has no narrower window
        title = re.search(r"<title>(.*?)</title>", chromium(tmp_path, width, 900, "--dump-dom", f"file://{tmp_path / 'measure.html'}"))[1]
        inner, scroll, *wide = title.split(" ", 2)
        assert int(scroll) <= int(inner) <= 1360 and wide in ([], [""]), (width, title)


# ---------------------------------------------------------------- whatever is watched
def test_an_exception_carries_what_was_seen(tmp_path):
    a = ember.ones(2)

    def fails():
        a + a
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        ember.fall(fails, html=tmp_path / "fall.html")
    told = caught.value.fall
    assert [call.op for call in told.calls] == ["aten::add.Tensor"] and told.error == "KeyError: 'mine'"
    assert "it raised KeyError" in str(told) and "It raised KeyError: &#x27;mine&#x27;" in (tmp_path / "fall.html").read_text()
    assert len(ember.fall(lambda: a + a).calls) == 1


def test_a_failed_fall_inside_of_a_fall_does_not_end_the_outer_one():
    a = ember.ones(2)

    def outer():
        with pytest.raises(RuntimeError, match="a recording is running"):
            ember.fall(lambda: a + a)
        return a * 2

    assert [call.op for call in ember.fall(outer).calls] == ["aten::mul.Tensor"]


def test_functions_of_ones_own_and_operators_of_ones_own():
    class Square(ember.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = ember.ones(3, requires_grad=True)
    told = ember.fall(lambda: Square.apply(x).sum().backward())
    assert x.grad.tolist() == [2, 2, 2]
    assert [call.engine for call in told.top if call.engine] and any("Square" in (call.engine or "") for call in told.top)

    library = ember.library.Library("test_lights", "DEF")
    library.define("three(Tensor x) -> Tensor")
    library.impl("three", lambda x: x * 3, "CPU")
    told = ember.fall(lambda: ember.ops.test_lights.three(ember.ones(2)))
    assert told.result.tolist() == [3, 3]
    (three,) = [call for call in told.top if call.op == "test_lights::three"]
    assert [part.op for part in three.parts] == ["aten::mul.Tensor"] and told.html()


def test_many_calls_are_counted_whole_and_told_once():
    def loop():
        t = ember.zeros(3)
        for _ in range(12_000):
            t = t + 1
        return t

    told = ember.fall(loop)
    assert told.result.tolist() == [12_000] * 3
    assert told.count == told.top_count == 12_001 and len(told.calls) == 10_000 and told.dropped == 2_001
    assert told.made == pytest.approx(10_000 * 12)  # of those that were kept
    assert told.time == pytest.approx(told.python + told.layers + told.kernel)
    assert sum(call.total for call in told.calls) < told.layers + told.kernel  # the rest's time is in the totals
    text, page = str(told), told.html()
    assert "for 9,999 calls" in text and len(text) < 3_000
    assert "9,999 times, " in page and len(page) < 250_000 and page.count('<details class="call"') == 2
    assert "2,001 more calls" in text and "2,001 more calls" in page


def test_calls_of_other_threads_are_counted_and_not_told():
    import threading

    a = ember.ones(4, 4)

    def both():
        other = threading.Thread(target=lambda: [a + a for _ in range(5)])
        other.start()
        other.join()
        return a * a

    told = ember.fall(both)
    assert [call.op for call in told.calls] == ["aten::mul.Tensor"] and told.elsewhere == 5
    assert "5 calls of other threads were not watched" in str(told) and "5 calls of other threads were not watched" in told.html()


def test_workers_of_a_loader_are_not_watched():
    from ember.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return ember.full((2,), float(i)) * 2

    told = ember.fall(lambda: [batch.tolist() for batch in DataLoader(Rows(), 2, num_workers=2)])
    assert told.result == [[[0, 0], [2, 2]], [[4, 4], [6, 6]]]
    assert not calls(told, "aten::mul.Tensor") and told.html()


@pytest.mark.parametrize("fn", [
    lambda: None,
    lambda: (ember.empty(0, 3) + 1, ember.empty(0).sum(), ember.empty(0, 3) @ ember.empty(3, 0)),
    lambda: (ember.ones(3, dtype=ember.complex64) * 2j).abs().sum(),
    lambda: ember.empty(3, 3, device="meta") @ ember.empty(3, 3, device="meta"),
    lambda: ember.vmap(lambda t: t.sum())(ember.ones(3, 2)),
    lambda: ember.func.grad(lambda t: (t**3).sum())(ember.ones(3)),
    lambda: ember.compile(lambda t: t * 2 + 1)(ember.ones(3)),
    lambda: ember.jit.trace(lambda t: t * 2, ember.ones(3))(ember.ones(3)),
    lambda: ember.cat([ember.ones(n, 2).t() for n in range(1, 40)], 1),
])  # fmt: skip
def test_odd_things_are_told_and_drawn(fn):
    told = ember.fall(fn)
    page = _Links()
    page.feed(told.html())
    assert page.open == [] and str(told).startswith("the fall of ")
    assert told.time == pytest.approx(told.python + sum(call.own for call in told.calls))


def test_inplace_on_a_view_and_backward_alone_and_a_step():
    a = ember.ones(3, 2)

    def views():
        b = a.clone()
        b[1:].mul_(2)
        return b

    told = ember.fall(views)
    (product,) = calls(told, "aten::mul_.Tensor") or calls(told, "aten::mul_.Scalar")
    assert product.made == 0 and told.result.tolist() == [[1, 1], [2, 2], [2, 2]]

    x = ember.ones(3, requires_grad=True)
    loss = (x * x).sum()
    told = ember.fall(loss.backward)
    assert told.top and all(call.engine or call.op == "aten::ones_like" for call in told.top) and not told.nodes
    optimizer = ember.optim.AdamW([x])
    told = ember.fall(optimizer.step)
    assert told.count and not told.nodes and "AdamW.step" in told.html()


# ---------------------------------------------------------------- graph
def test_graph_counts_nodes_leaves_and_bytes():
    w = ember.ones(4, 4, requires_grad=True)
    x = ember.ones(2, 4)
    drawn = ember.graph((x @ w).exp().sum(), {"w": w})
    assert [node.name for node in drawn.nodes] == ["SumBackward0", "ExpBackward0", "MmBackward0", "AccumulateGrad"]
    assert drawn.leaves == 1 and drawn.nodes[3].label == "w [4, 4]"
    assert drawn.nodes[1].saved_bytes == 2 * 4 * 4 and drawn.nodes[2].saved_bytes >= x.numel() * 4
    assert drawn.own_bytes == 2 * 4 * 4 + 2 * 4 * 4  # exp's result and x: the leaf's own bytes are not counted
    assert repr(drawn).startswith("<ember.Graph: 4 nodes, 1 leaf, ")


def test_graph_draws_every_node_below_its_user(tmp_path):
    a = ember.ones(2, requires_grad=True)
    b = a * 2
    drawn = ember.graph((b * b + a.exp()).sum())
    path = drawn.save(tmp_path / "graph.svg")
    from xml.etree import ElementTree

    tree = ElementTree.parse(path).getroot()
    boxes = {}
    for group in tree.iter("{http://www.w3.org/2000/svg}g"):
        name = group.find("{http://www.w3.org/2000/svg}text").text
        boxes.setdefault(name, []).append(float(group.find("{http://www.w3.org/2000/svg}rect").get("y")))
    assert len(boxes["MulBackward0"]) == 2 and sum(map(len, boxes.values())) == len(drawn.nodes)
    assert boxes["SumBackward0"][0] < boxes["AddBackward0"][0] < min(boxes["MulBackward0"]) < max(boxes["MulBackward0"])
    assert boxes["AccumulateGrad"][0] > max(boxes["MulBackward0"] + boxes["ExpBackward0"])
    edges = [e for e in tree.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "e"]
    assert len(edges) == sum(len(node.edges) for node in drawn.nodes)


def test_graph_of_a_deep_chain_is_counted_whole_and_drawn_in_part():
    y = ember.ones(2, requires_grad=True)
    for _ in range(20_000):
        y = y * 1.5
    drawn = ember.graph(y.sum())
    assert len(drawn.nodes) == 20_002 and drawn.saved_bytes >= 20_000 * 4
    text = drawn._repr_svg_()
    assert text.count("<g>") == 300 and "the 19,702 nodes farther away are not drawn" in text


def test_graph_of_nothing_says_why():
    with pytest.raises(ValueError, match="nothing was recorded"):
        ember.graph(ember.ones(2))
    with pytest.raises(ValueError, match="a leaf has no graph"):
        ember.graph(ember.ones(2, requires_grad=True))


def test_graph_after_backward_says_released():
    a = ember.ones(2, requires_grad=True)
    b = a.exp().sum()
    b.backward()
    drawn = ember.graph(b)
    assert drawn.saved_bytes == 0 and "released" in drawn._repr_svg_()


# ---------------------------------------------------------------- memory, info, variables
def test_snapshot_lists_live_storages_and_where_they_were_made():
    assert ember.memory.snapshot()["storages"] is None
    ember.memory.record_history()
    try:
        kept = ember.ones(1000)
        gone = ember.ones(500)
        view = kept[:10]
        del gone
        rows = ember.memory.snapshot()["storages"]
        assert [(row["bytes"], row["kind"]) for row in rows if row["bytes"] >= 1000] == [(4000, "own")]
        assert rows[0]["references"] == 2 and view.shape == (10,)
        frame = rows[0]["frames"][0]
        assert frame["filename"] == __file__ and frame["name"] == "test_snapshot_lists_live_storages_and_where_they_were_made"
    finally:
        ember.memory.record_history(False)
    assert ember.memory.snapshot()["storages"] is None
    assert ember.memory.stats()["live"]["STORAGE"] >= 1


def run(code, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EMBER_")}
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, timeout=120, env={**environment, **variables})


def test_info_says_what_there_is():
    done = run(["-m", "ember.info"])
    assert done.returncode == 0 and done.stderr == ""
    for word in ("libember.so", "instruction set in use", "threads", "OpenBLAS", "oneDNN", ember.version.ember):
        assert word in done.stdout
    import json

    facts = json.loads(run(["-m", "ember.info", "--json"], EMBER_ISA="baseline", EMBER_OPENBLAS="none").stdout)
    assert facts["processor"]["instruction set in use"] == "baseline"
    assert facts["processor"]["chosen since"] == "EMBER_ISA asks for it"
    assert "EMBER_OPENBLAS" in facts["environment"] and "(there are EMBER_LOG, " in done.stdout
    assert "(Ember knows no such variable)" in run(["-m", "ember.info"], EMBER_QQQQ="1").stdout
    assert facts["libraries"]["OpenBLAS"] == "switched off by EMBER_OPENBLAS=none"
    assert run(["-m", "ember.info", "--help"]).stdout.startswith("usage: python -m ember.info")


def test_unknown_variables_warn_once_with_the_nearest():
    done = run(["-c", "import ember, ember.nn"], EMBER_OPENBLASS="none")
    assert done.stderr.count("EMBER_OPENBLASS is set, but Ember knows no such variable (did you mean EMBER_OPENBLAS?)") == 1
    assert "known: EMBER_LOG, " in run(["-c", "import ember"], EMBER_QQQQ="1").stderr
    assert run(["-c", "import ember"], **dict.fromkeys(_env.TOOLS, "1"), EMBER_ISA="baseline").stderr == ""
    # tests/c/test_environment.c has the rest: it is the library that tells, C programs too


def test_every_variable_that_is_read_is_in_the_tables():
    read = set()
    for pattern in ("src/**/*.[ch]", "python/csrc/*.c"):
        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True):
            with open(path, encoding="utf-8") as file:
                words = set(re.findall(r'"(EMBER_[A-Z0-9_]+)"', file.read()))
            if path.endswith(os.path.join("core", "environment.c")):
                assert words == set(_env.VARIABLES) | set(_env.TOOLS)
            else:
                read |= words
    assert read == set(_env.VARIABLES)
    tools = set()
    for pattern in ("tests/**/*.py", "tools/*.py", "bench/*.py", "proofs/*.py"):
        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True):
            with open(path, encoding="utf-8") as file:
                tools |= set(re.findall(r'environ(?:\.get\(|\[|\.setdefault\()"(EMBER_\w+)"', file.read()))
    assert tools <= set(_env.VARIABLES) | set(_env.TOOLS), tools - set(_env.TOOLS)


def test_the_page_of_the_lights_lists_the_variables():
    with open(os.path.join(ROOT, "docs", "lights.md"), encoding="utf-8") as file:
        listed = re.findall(r"^\| `(EMBER_\w+)` \| (.*?) \| (.*?) \|$", file.read(), re.M)
    assert listed == [(name, *words) for name, words in _env.VARIABLES.items()]


def test_the_lights_cost_an_import_nothing():
    done = run(["-c", "import sys, ember; print([m for m in sys.modules if m.startswith(('ember.debug', 'ember._env', 'difflib'))])"])
    assert done.stdout == "[]\n", done.stderr
