"""L-BFGS, with a line search by the strong Wolfe conditions (J. Nocedal and S. J. Wright, "Numerical optimization", 2006)."""

from typing import Any

import ember
from .optimizer import Optimizer, _to_scalar

__all__ = ["LBFGS"]


def _cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with these values and slopes is least, inside bounds (Nocedal, Wright: 3.59)."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 ** 2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square ** 0.5
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


class _Search:
    """A line search along a direction: brackets a step that satisfies the strong Wolfe conditions, then narrows it."""

    def __init__(self, evaluate, f, slope, c1=1e-4, c2=0.9, tolerance=1e-9, most=25) -> None:
        self.evaluate, self.f, self.slope = evaluate, f, slope  # evaluate(t) -> (f, gradient, slope) at step t
        self.c1, self.c2, self.tolerance, self.most = c1, c2, tolerance, most

    def too_high(self, t, f) -> bool:
        return f > self.f + self.c1 * t * self.slope

    def flat(self, slope) -> bool:
        return abs(slope) <= -self.c2 * self.slope

    def bracket(self, t, start) -> Any:
        """(points, found, trials): one point if it will do, else the two ends of a bracket."""
        before, trials = (0.0, self.f, start, self.slope), 0
        now = (t, *self.evaluate(t))
        trials += 1
        while trials <= self.most:
            t, f, _, slope = now
            if self.too_high(t, f) or (trials > 1 and f >= before[1]):
                return [before, now], False, trials
            if self.flat(slope):
                return [now], True, trials
            if slope >= 0:
                return [before, now], False, trials
            nearest, farthest = t + 0.01 * (t - before[0]), t * 10
            further = _cubic_minimum(before[0], before[1], before[3], t, f, slope, bounds=(nearest, farthest))
            before, now = now, (further, *self.evaluate(further))
            trials += 1
            if trials == self.most:
                return [(0.0, self.f, start, self.slope), now], False, trials
        return [before, now], False, trials

    def narrow(self, points, trials, size) -> Any:
        """Shrink the bracket to a step that will do. size: the largest component of the direction."""
        low, high = (0, 1) if points[0][1] <= points[-1][1] else (1, 0)
        stuck = False
        while trials < self.most and abs(points[1][0] - points[0][0]) * size >= self.tolerance:
            a, b = points
            t = _cubic_minimum(a[0], a[1], a[3], b[0], b[1], b[3])
            left, right = sorted((a[0], b[0]))
            margin = 0.1 * (right - left)
            if min(right - t, t - left) < margin:  # Too near an end: once that may be, twice it must move.
                if stuck or t >= right or t <= left:
                    t = right - margin if abs(t - right) < abs(t - left) else left + margin
                    stuck = False
                else:
                    stuck = True
            else:
                stuck = False
            new = (t, *self.evaluate(t))
            trials += 1
            if self.too_high(t, new[1]) or new[1] >= points[low][1]:
                points[high] = new
                low, high = (0, 1) if points[0][1] <= points[1][1] else (1, 0)
                continue
            done = self.flat(new[3])
            if not done and new[3] * (points[high][0] - points[low][0]) >= 0:
                points[high] = points[low]
            points[low] = new
            if done:
                break
        return points[low], trials

    def run(self, t, start, size) -> Any:
        """(f, gradient, t, evaluations) of the step found from a first guess t; start: the gradient at 0."""
        points, found, trials = self.bracket(t, start)
        point = points[0]
        if not found:
            point, trials = self.narrow(points, trials, size)
        return point[1], point[2], point[0], trials


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes; step(closure) evaluates the closure many times.

    One parameter group only. line_search_fn: None (step lr) or "strong_wolfe". State is kept with the first parameter:
    d, t, old_dirs, old_stps, ro, al, H_diag, prev_flat_grad, prev_loss, n_iter, func_evals.
    """

    def __init__(self, params, lr: float = 1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None) -> None:
        if isinstance(lr, ember.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self):
        views = []
        for p in self._params:
            grad = ember.zeros_like(p) if p.grad is None else p.grad
            views.append((ember.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return ember.cat(views)

    def _move(self, step, direction):
        offset = 0
        for p in self._params:
            p = ember.view_as_real(p) if p.is_complex() else p
            p.add_(direction[offset:offset + p.numel()].view_as(p), alpha=step)
            offset += p.numel()

    def _direction(self, state, grad, history):
        """The quasi-Newton direction: minus the inverse Hessian's estimate times grad, by the two-loop recursion."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        y, s = grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(state["old_dirs"]) == history:
                for kept in ("old_dirs", "old_stps", "ro"):
                    state[kept].pop(0)
            state["old_dirs"].append(y)
            state["old_stps"].append(s)
            state["ro"].append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        q, weights = grad.neg(), []
        changes = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        for y, s, ro in reversed(changes):
            weights.append(s.dot(q) * ro)
            q.add_(y, alpha=-weights[-1].item())
        state["al"] = [*reversed(weights), *[None] * (history - len(weights))]
        d = q.mul(state["H_diag"])
        for (y, s, ro), weight in zip(changes, reversed(weights)):
            d.add_(s, alpha=(weight - y.dot(d) * ro).item())
        return d

    @ember.no_grad()
    def step(self, closure) -> Any:
        """Up to max_iter quasi-Newton steps. closure: recomputes the loss and its gradients. Returns the first loss."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        closure = ember.enable_grad()(closure)
        lr, search = _to_scalar(group["lr"]), group["line_search_fn"]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            d = self._direction(state, grad, group["history_size"])
            state.update(d=d, prev_flat_grad=grad.clone(), prev_loss=loss)
            t = min(1.0, 1.0 / grad.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(d).item()
            if slope > -group["tolerance_change"]:
                state["t"] = t
                break
            before, spent = loss, 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                loss, grad, t, spent = self._search(closure, loss, slope, grad, d, t)
                self._move(t, d)
            else:
                self._move(t, d)
                if iterations != group["max_iter"]:
                    with ember.enable_grad():
                        loss = float(closure())
                    grad = self._flat_grad()
                    spent = 1
            state["t"] = t
            evaluations += spent
            state["func_evals"] += spent
            if (iterations == group["max_iter"] or evaluations >= group["max_eval"]
                    or grad.abs().max() <= group["tolerance_grad"] or d.mul(t).abs().max() <= group["tolerance_change"]
                    or abs(loss - before) < group["tolerance_change"]):
                break
        return first

    def _search(self, closure, loss, slope, grad, d, t):
        start = [p.clone(memory_format=ember.contiguous_format) for p in self._params]

        def evaluate(step):
            self._move(step, d)
            f = float(closure())
            there = self._flat_grad()
            for p, kept in zip(self._params, start):
                p.copy_(kept)
            return f, there, there.dot(d).item()

        return _Search(evaluate, loss, slope).run(t, grad, d.abs().max().item())
