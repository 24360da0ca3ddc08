"""Fourier transforms against the definition (a matrix of roots of one for each dim), and dropout of features."""
import numpy as np
from makers import calls
from subject import Dtype


def dft(n, sign):
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


def transform(x, dims, sign):
    for d in dims:
        x = np.moveaxis(np.tensordot(dft(x.shape[d], sign), x, (1, d)), 0, d)
    return x.astype(np.complex128)


def scaled(y, n, mode):
    return y / (np.sqrt(n) if mode == 1 else n if mode == 2 else 1)


def points(x, dims, last=None):
    return int(np.prod([x.shape[d] for d in dims[:-1]] + [last or x.shape[dims[-1]]])) if len(dims) else 1


def c2c(x, dims, mode, forward):
    return scaled(transform(x, dims, -1 if forward else 1), points(x, dims), mode)


def r2c(x, dims, mode, onesided):
    y = c2c(x, dims, mode, True)
    return np.take(y, range(x.shape[dims[-1]] // 2 + 1), dims[-1]) if onesided else y


def c2r(x, dims, mode, last):
    x, d = transform(x, dims[:-1], 1), dims[-1]
    half = np.take(x, range(last // 2 + 1), d)
    mirrored = np.conj(np.take(half, range((last - 1) // 2, 0, -1), d))
    full = np.concatenate([half, mirrored], d)
    return scaled(transform(full, [d], 1).real, points(x, dims, last), mode)


def fitted(x, sizes, dims):
    for size, d in zip(sizes, dims):
        if size is None or size == -1:
            continue
        x = np.take(x, range(min(size, x.shape[d])), d)
        x = np.pad(x, [(0, size - x.shape[d] if k == d % x.ndim else 0) for k in range(x.ndim)])
    return x


MODES = {None: (0, 2), "backward": (0, 2), "forward": (2, 0), "ortho": (1, 1)}


def one(kind):
    def reference(x, n=None, dim=-1, norm=None):
        return several(kind)(x, None if n is None else [n], [dim], norm)
    return reference


def several(kind):
    """fft, ifft, rfft, irfft, hfft or ihfft of several dims."""
    def reference(x, s=None, dim=None, norm=None):
        dims = list(dim) if dim is not None else list(range(-len(s), 0)) if s is not None else list(range(-x.ndim, 0))
        sizes = list(s) if s is not None else [None] * len(dims)
        mode = MODES[norm]
        if kind in ("irfft", "hfft"):
            last = sizes[-1] if sizes[-1] not in (None, -1) else 2 * (x.shape[dims[-1]] - 1)
            x = fitted(x, sizes[:-1] + [last // 2 + 1], dims)
            if kind == "irfft":
                return c2r(x, dims, mode[1], last)
            y = np.conj(transform(x, dims[:-1], -1))
            return scaled(c2r(y, dims[-1:], 0, last), points(x, dims, last), mode[0])
        x = fitted(x, sizes, dims)
        if kind == "rfft":
            return r2c(x, dims, mode[0], True)
        if kind == "ihfft":
            return np.conj(r2c(x, dims, mode[1], True))
        return c2c(x, dims, mode[kind == "ifft"], kind == "fft")
    return reference


def low_level(E):
    return [
        E("_fft_c2c", calls(lambda m: (m(3, 4, 5), [1], 0, True), lambda m: (m(3, 4, 5), [0, 2], 1, False),
                            lambda m: (m(9, 37), [1], 2, True), lambda m: (m(2, 3), [], 0, True)), c2c, "fo", scale=8),
        E("_fft_r2c", calls(lambda m: (m(3, 4, 5), [2], 0, True), lambda m: (m(3, 4, 6), [0, 2], 1, True),
                            lambda m: (m(3, 4, 5), [0, 1], 2, False)), r2c, "fo", "complex", scale=8),
        E("_fft_c2r", calls(lambda m: (m(3, 4, 5), [2], 0, 8), lambda m: (m(3, 4, 5), [1, 2], 1, 9),
                            lambda m: (m(3, 4, 5), [0], 2, 4)), c2r, "fo", "real", scale=8),
    ]


def named(E):
    made, result = [], {"rfft": "wide_complex", "ihfft": "wide_complex", "irfft": "wide_real", "hfft": "wide_real"}
    for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        kinds = "int float" if kind in ("rfft", "ihfft") else "int float complex"
        flat = calls(lambda m: (m(3, 6),), lambda m: (m(3, 6), 5, 0, "ortho"), lambda m: (m(2, 7), 9, -1, "forward"))
        plane = calls(lambda m: (m(2, 3, 4),), lambda m: (m(2, 3, 4), [4, 3], [0, 2], "ortho"))
        many = calls(lambda m: (m(2, 3, 4),), lambda m: (m(2, 3, 4), [4, -1], None, "forward"),
                     lambda m: (m(2, 3, 4), None, [1]))
        made += [E(f"fft_{kind}", flat, one(kind), "fo", result.get(kind, "wide_complex"), scale=16, kinds=kinds),
                 E(f"fft_{kind}2", plane, lambda x, s=None, dim=(-2, -1), norm=None, kind=kind: several(kind)(
                     x, s, dim, norm), "fo", result.get(kind, "wide_complex"), scale=16, kinds=kinds),
                 E(f"fft_{kind}n", many, several(kind), "fo", result.get(kind, "wide_complex"), scale=16, kinds=kinds)]
    shift = calls(lambda m: (m(3, 4),), lambda m: (m(3, 5), [1]), lambda m: (m(2, 3, 4), [0, -1]))
    freq = calls(lambda m: ((5,), {"dtype": Dtype(m.dtype)}), lambda m: ((6, 0.5), {"dtype": Dtype(m.dtype)}))
    return made + [
        E("fft_fftshift", shift, lambda x, dim=None: np.fft.fftshift(x, dim)),
        E("fft_ifftshift", shift, lambda x, dim=None: np.fft.ifftshift(x, dim)),
        E("fft_fftfreq", freq, lambda n, d=1.0, dtype=None: np.fft.fftfreq(n, d), kinds="float"),
        E("fft_rfftfreq", freq, lambda n, d=1.0, dtype=None: np.fft.rfftfreq(n, d), kinds="float"),
    ]


def dropouts(E):
    def features(results, args, kwargs):
        x, y = args[0].values, results[0]
        kept = np.isclose(y, x * 2, rtol=1e-2) & (x != 0)
        assert np.all(kept.all((2, 3)) | (y == 0).all((2, 3)))

    def alpha(results, args, kwargs):
        assert np.isfinite(results[0]).all() and (results[0] != args[0].values).any()
    sample = calls(lambda m: (m(3, 4, 2, 2), 0.5, True))
    same = lambda x, *_: x  # noqa: E731
    return [entry for name, check in (("feature_dropout", features), ("alpha_dropout", alpha),
                                      ("feature_alpha_dropout", alpha))
            for entry in (E(name, sample, same, random=check, kinds="float"),
                          E(name + "_", sample, same, random=check, kinds="float"))]


def groups(E):
    return {"fft": low_level(E) + named(E), "dropouts": dropouts(E)}
