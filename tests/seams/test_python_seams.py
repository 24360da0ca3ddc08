"""Seams between Python objects and C tensors: identity, dictionaries, weak references, cycles."""
import gc
import weakref

from seam import torch


class Tagged(torch.Tensor):
    pass


def test_subclass_survives_in_graph():
    t = torch.ones(2).as_subclass(Tagged).requires_grad_()
    t.note = "kept"
    with torch._C.DisableTorchFunctionSubclass():
        y = (t * 2).sum()
    node = y.grad_fn.next_functions[0][0].next_functions[0][0]
    ident = id(t)
    del t
    gc.collect()
    back = node.variable
    assert type(back) is Tagged and back.note == "kept" and id(back) == ident
    y.backward()
    assert back.grad.tolist() == [2., 2.]


def test_dict_survives_in_graph():
    t = torch.ones(2, requires_grad=True)
    t.note = ["kept"]
    y = (t * 3).sum()
    del t
    gc.collect()
    back = y.grad_fn.next_functions[0][0].next_functions[0][0].variable
    assert back.note == ["kept"]
    back.note.append("more")
    del back
    gc.collect()
    assert y.grad_fn.next_functions[0][0].next_functions[0][0].variable.note == ["kept", "more"]


def test_weakref_to_tensor_held_by_c():
    t = torch.ones(2, requires_grad=True)
    ref = weakref.ref(t)
    y = (t * 3).sum()
    del t
    gc.collect()
    assert ref() is not None, "C still holds the tensor: its object may not die"
    assert ref() is y.grad_fn.next_functions[0][0].next_functions[0][0].variable
    del y
    gc.collect()
    assert ref() is None


def test_hook_cycle_is_collected():
    class Probe:
        pass
    dead = []
    x = torch.ones(2, requires_grad=True)
    probe = Probe()
    weakref.finalize(probe, dead.append, 1)
    x.register_hook(lambda g, x=x, probe=probe: None)  # x -> hook -> x
    del x, probe
    gc.collect()
    assert dead == [1]
