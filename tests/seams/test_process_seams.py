"""Seams with the process: fork, denormals, what the import opens."""
from seam import IS_EMBER, run_program


def test_fork_after_threads():
    out = run_program("""
torch.set_num_threads(2)
x = torch.ones(1000, 1000)
(x @ x).sum(); (x * 2).sum()
pid = os.fork()
if pid == 0:
    y = torch.ones(1000, 1000)
    ok = (y @ y)[0, 0].item() == 1000. and (y + y).sum().item() == 2e6
    os._exit(0 if ok else 3)
_, status = os.waitpid(pid, 0)
print("child", os.waitstatus_to_exitcode(status))
print((x * 2).sum().item())
""", timeout=60)
    assert out.split() == ["child", "0", "2000000.0"]


def test_forked_child_trains():
    out = run_program("""
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def train(steps):
    for _ in range(steps):
        x = torch.randn(32, 8)
        loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
first = train(1)
big = torch.ones(600, 600); (big @ big)
pid = os.fork()
if pid == 0:
    last = train(150)
    os._exit(0 if last < first / 2 else 3)
_, status = os.waitpid(pid, 0)
print("child", os.waitstatus_to_exitcode(status))
""", timeout=90)
    assert out.split() == ["child", "0"]


def test_denormals_after_import():
    out = run_program("""
import ctypes, struct
tiny = struct.unpack('d', struct.pack('q', 1))[0]
print(tiny * 1.0 == tiny and tiny + 0.0 > 0.0, torch.tensor([1e-42]).mul(1).item() > 0, (torch.tensor([1e-42]) + 0).item() > 0)
""")
    assert out.split() == ["True", "True", "True"]


def test_import_opens_no_math_library():
    if not IS_EMBER:
        return
    out = run_program("""
maps = open('/proc/self/maps').read()
print([w for w in ('openblas', 'dnnl', 'mkl', 'numpy') if w in maps], 'numpy' in sys.modules)
""")
    assert out.strip() == "[] False"
