"""Whether two objects are the same in everything a file should keep; shared by tests here and by the oracle's side."""
import collections

DATA = __file__.rsplit("/", 2)[0] + "/data/"


def numbers(torch, t):
    """The elements in order, exactly."""
    if t.dtype.is_complex:
        t = torch.view_as_real(t)
    if t.dtype.is_floating_point:
        t = t.double()
    return t.flatten().tolist()


def describe(torch, x, memory, seen):
    """x as plain values: tensors by dtype, geometry, numbers, flags and which storage they share."""
    if isinstance(x, torch.Tensor):
        kind = type(x).__name__
        if x.device.type == "meta":
            return [kind, str(x.dtype), list(x.shape), list(x.stride()), "meta"]
        storage = x.untyped_storage()
        key = memory.setdefault((storage.data_ptr(), storage.nbytes()) if storage.nbytes() else id(x), len(memory))
        extra = describe(torch, dict(x.__dict__), memory, seen) if x.__dict__ else None
        return [kind, str(x.dtype), list(x.shape), list(x.stride()), x.storage_offset(), x.requires_grad, key, storage.nbytes(),
                numbers(torch, x.detach()), extra]
    if isinstance(x, (dict, list)):
        number = seen.setdefault(id(x), len(seen))
        seen[("keep", number)] = x
        if isinstance(x, dict):
            parts = [[describe(torch, k, memory, seen), describe(torch, v, memory, seen)] for k, v in x.items()]
            if isinstance(x, collections.OrderedDict) and x.__dict__:
                parts.append(describe(torch, x.__dict__, memory, seen))
            return [type(x).__name__, number, parts]
        return ["list", number, [describe(torch, v, memory, seen) for v in x]]
    if isinstance(x, tuple):
        return [type(x).__name__, [describe(torch, v, memory, seen) for v in x]]
    if isinstance(x, torch.nn.Module):
        return [type(x).__module__.replace("ember", "torch"), type(x).__qualname__, x.training,
                describe(torch, x.state_dict(), memory, seen), [describe(torch, m, memory, seen) for m in x.children()]]
    if isinstance(x, torch.Generator):
        return ["Generator", x.initial_seed(), x.get_state().tolist()]
    return [type(x).__name__, str(x) if not isinstance(x, (int, float, str, bytes)) else repr(x)]


def described(torch, x):
    return describe(torch, x, {}, {})
