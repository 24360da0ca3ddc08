# lint: table
"""torch.func and torch.autograd.functional: expressions and what PyTorch answers, values and complaints alike."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases

cases = Cases(__file__)
EXPRESSIONS = {
    "gradients": [
        'F.grad(f)(x)',
        'F.grad(f)(xg)',
        'F.grad(lambda a,b:(a*b*b).sum(),argnums=(0,1))(x,x+1)',
        'F.grad(lambda a,b:(a*b*b).sum(),argnums=1)(x,x+1)',
        "F.grad(lambda d:(d['a']*d['b']).sum())({'a':x,'b':x*2})",
        'F.grad(lambda a:((a*a).sum(),a*2),has_aux=True)(x)',
        'F.grad_and_value(f)(x)',
        'F.grad_and_value(lambda a:((a*a).sum(),a*2),has_aux=True)(x)',
        'F.grad(F.grad(lambda a:(a**3)))(T.tensor(2.))',
        'F.grad(lambda a:F.grad(f)(a).sum())(x)',
        'F.grad(g)(x)',
        'F.grad(lambda a:3.)(x)',
        'F.grad(lambda a:(a,a))(x)',
        'F.grad(lambda a:((a,),a),has_aux=True)(x)',
        'F.grad(f,argnums=1)(x)',
        'F.grad(f,argnums=-1)(x)',
        "F.grad(f,argnums='a')(x)",
        'F.grad(f)(3)',
        'F.grad(f)(T.arange(3))',
        'F.grad(lambda a,b:a.sum())(x,x)',
        'F.grad(lambda a,b:a.sum(),argnums=1)(x,x)',
        'F.grad(lambda a:a.sum(),has_aux=True)(x)',
        'F.vjp(g,x)[0]',
        'F.vjp(g,x)[1](x)',
        'F.vjp(two,x,x+1)[1]((x,x))',
        'F.vjp(two,x,x+1)[0]',
        'F.vjp(lambda a:(a*2,a),x,has_aux=True)[2]',
        'F.vjp(two,x,x)[1](x)',
        'F.vjp(g,x)[1](T.ones(2))',
        'F.vjp(g)',
        "F.vjp(lambda a:{'o':a*a},x)[1]({'o':x})",
        'F.vjp(lambda a:3,x)',
        'F.jvp(g,(x,),(x,))',
        'F.jvp(two,(x,x+1),(x,T.ones(3)))',
        'F.jvp(lambda a:(a*2,a),(x,),(x,),has_aux=True)',
        'F.jvp(g,x,x)',
        'F.jvp(g,(x,),(x,x))',
        'F.jvp(g,(),())',
        'F.jvp(g,(x,),(T.ones(2),))',
        'F.jvp(lambda a:T.ones(2),(x,),(x,))',
        'F.jvp(lambda a:T.ones(2),(x,),(x,),strict=True)',
    ],
    "jacobians": [
        'F.jacrev(g)(x)',
        'F.jacfwd(g)(x)',
        'F.hessian(f)(x)',
        'F.jacrev(two)(x,x+1)',
        'F.jacrev(two,argnums=(0,1))(x,x+1)',
        "F.jacrev(lambda a:{'o':a*a,'s':a.sum()})(x)",
        'F.jacfwd(two,argnums=(0,1))(x,x+1)',
        'F.jacrev(lambda a:(a*a,a),has_aux=True)(x)',
        'F.jacfwd(lambda a:(a*a,a),has_aux=True)(x)',
        'F.jacrev(g)(M).shape',
        'F.hessian(lambda a,b:(a*a*b).sum(),argnums=(0,1))(x,x+1)',
        'F.jacrev(lambda a:3)(x)',
        'F.jacrev(g,chunk_size=2)(x)',
        'F.jacrev(g,chunk_size=0)(x)',
        "F.jacrev(lambda d:d['a']*2)({'a':x,'b':x})",
        'F.jacfwd(lambda a:T.ones(2))(x)',
        'F.jacrev(lambda a:T.ones(2))(x)',
    ],
    "mapped": [
        'vmap(T.dot)(M,M)',
        'vmap(T.dot,(0,None))(M,x)',
        'vmap(lambda a:a*2,in_dims=1,out_dims=1)(M)',
        'vmap(lambda a:(a.sum(),a))(M)',
        "vmap(lambda a:{'s':a.sum()})(M)",
        "vmap(lambda d:d['a']+d['b'],in_dims=({'a':0,'b':None},))({'a':M,'b':x})",
        'vmap(vmap(T.mul))(M,M)',
        'vmap(lambda a:a,out_dims=-1)(M)',
        'vmap(F.grad(f))(M)',
        'vmap(F.jacrev(g))(M).shape',
        'vmap(T.sum,chunk_size=1)(M)',
        'vmap(T.sum,chunk_size=0)(M)',
        'vmap(T.sum)()',
        'vmap(T.sum)(3)',
        'vmap(T.sum,in_dims=(0,0))(M)',
        'vmap(T.mul,in_dims=(0,))(M,M)',
        "vmap(T.sum,in_dims='a')(M)",
        'vmap(T.sum,in_dims=3)(M)',
        'vmap(T.sum,in_dims=(None,))(M)',
        "vmap(T.sum,in_dims=('a',))(M)",
        'vmap(T.mul,in_dims=(0,0))(M,3)',
        'vmap(T.mul,in_dims=(0,0))(M,T.ones(3,3))',
        'vmap(lambda a:3)(M)',
        'vmap(lambda a:(a,3))(M)',
        'vmap(lambda a:None)(M)',
        'vmap(T.sum,out_dims=(0,0))(M)',
        'vmap(lambda a:a,out_dims=2)(M)',
        "vmap(lambda a:a,out_dims='a')(M)",
        'vmap(lambda a:(a,a),out_dims=(0,1))(M)',
        'vmap(lambda a:(a,a),out_dims=(0,None))(M)',
        'vmap(lambda a,b:a,in_dims=(0,None),out_dims=0)(M,x)',
        'vmap(lambda a:T.rand(2)+a.sum())(M)',
        "vmap(lambda a:T.rand(2),randomness='same')(M)",
        "vmap(lambda a:T.rand(2)+0*a.sum(),randomness='different')(M).shape",
        "vmap(T.sum,randomness='x')(M)",
        'vmap(lambda a,*,k=1:a*k)(M,k=3)',
        'vmap(lambda a: x)(M)',
        'vmap(T.sum,0)(T.ones(0,3))',
        'vmap(T.dot)(M,xg.expand(2,3)).requires_grad',
    ],
    "functional": [
        'A.jacobian(g,x)',
        'A.jacobian(two,(x,x+1))',
        'A.hessian(f,x)',
        'A.hessian(lambda a,b:(a*a*b).sum(),(x,x+1))',
        'A.vjp(g,x,x)',
        'A.vjp(f,x)',
        'A.vjp(g,x)',
        'A.jvp(g,x,x)',
        'A.jvp(lambda s:s*2,T.tensor(2.))',
        'A.jvp(g,x)',
        'A.vhp(f,x,x)',
        'A.hvp(f,x,x)',
        'A.hvp(g,x,x)',
        'A.vhp(g,x,x)',
        'A.jacobian(g,x,create_graph=True)',
        'A.jacobian(g,x,vectorize=True)',
        "A.jacobian(g,x,vectorize=True,strategy='forward-mode')",
        "A.jacobian(g,x,strategy='forward-mode')",
        "A.jacobian(g,x,strategy='x')",
        'A.jacobian(g,3)',
        'A.jacobian(g,(x,3))',
        'A.jacobian(lambda a:3,x)',
        'A.jacobian(lambda a:(a,3),x)',
        'A.jacobian(lambda a:T.ones(2),x)',
        'A.jacobian(lambda a:T.ones(2),x,strict=True)',
        'A.jacobian(lambda a,b:a*2,(x,x),strict=True)',
        'A.jacobian(lambda a,b:a*2,(x,x))',
        'A.hessian(lambda a:a.sum(),x)',
        'A.hessian(lambda a:a.sum(),x,strict=True)',
        'A.hessian(lambda a:(a,a),x)',
        'A.vjp(g,x,T.ones(2))',
        'A.vjp(g,x,(x,x))',
        'A.jvp(g,x,T.ones(2))',
        'A.vjp(g,x,x,strict=True)',
        'A.jvp(lambda a:T.ones(3),x,x,strict=True)',
        'A.jacobian(g,x,vectorize=True,strict=True)',
        'A.jacobian(g,M).shape',
        'A.hessian(lambda a:g(a).sum(),M).shape',
        'A.vhp(lambda a,b:(a*b).sum(),(x,x),(x,x))',
        'A.hvp(lambda a,b:(a*b).sum(),(x,x),(x,x))',
        'A.jacobian(g,x,create_graph=True).requires_grad',
        'A.jacobian(g,xg).requires_grad',
        'A.jacobian(g,xg,create_graph=True).requires_grad',
    ],
    "modules": [
        'F.functional_call(m,d,(x,))',
        'F.functional_call(m,d,x)',
        'F.functional_call(m,(d,{}),(x,))',
        "F.functional_call(m,{'weight':d['weight']},x)",
        'F.functional_call(m,d)',
        "F.functional_call(m,{'a':x},x)",
        "F.functional_call(m,{'a':x},x,strict=True)",
        "F.functional_call(m,{'weight':d['weight']},x,strict=True)",
        'F.functional_call(m,3,x)',
        'F.functional_call(m,[d,d],x)',
        'F.functional_call(3,d,x)',
        "F.functional_call(m,{'weight':3},x)",
        "F.functional_call(td,{'a.weight':T.eye(3)*2},x)",
        "F.functional_call(td,{'a.weight':T.eye(3)*2},x,tie_weights=False)",
        "F.functional_call(td,{'a.weight':T.eye(3),'b.weight':T.eye(3)*2},x)",
        'F.grad(lambda p:F.functional_call(m,p,(x,)).pow(2).sum())(d)',
        'F.stack_module_state([])',
        'F.stack_module_state([m,td])',
        'F.stack_module_state([m,T.nn.Linear(3,2).eval()])',
        'F.stack_module_state([m,T.nn.Linear(3,2).requires_grad_(False)])',
        'F.stack_module_state([m,m])',
        'vmap(lambda p,x:F.functional_call(m,p,(x,)),in_dims=(0,None))(F.stack_module_state([m,m])[0],x)',
        'F.functional_call(lstm,{k:v.detach()*0 for k,v in lstm.named_parameters()},T.ones(2,1,3))[0]',
    ],
}


def names(T):
    """What the expressions may use."""
    import importlib

    class Tied(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = T.nn.Linear(3, 3, bias=False), T.nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    T.manual_seed(0)
    x, m = T.tensor([1.0, 2.0, 3.0]), T.nn.Linear(3, 2)
    return {"T": T, "F": importlib.import_module(T.__name__ + ".func"), "A": importlib.import_module(T.__name__ + ".autograd.functional"),
            "vmap": T.vmap, "x": x, "xg": x.clone().requires_grad_(), "M": T.arange(6.0).reshape(2, 3), "m": m, "td": Tied(),
            "lstm": T.nn.LSTM(3, 2), "d": {k: v.detach() * 0 + 1 for k, v in m.named_parameters()},
            "f": lambda x: (x**3).sum(), "g": lambda x: x.sin() * x.sum(), "two": lambda x, y: (x * y, x - y)}


def answers(T, group):
    known, made = names(T), {}
    for text in EXPRESSIONS[group]:
        try:
            made[text] = eval(text, known)  # noqa: S307
            if callable(made[text]):
                made[text] = "a function"
            elif isinstance(made[text], tuple) and any(map(callable, made[text])):
                made[text] = [v for v in made[text] if not callable(v)]
        except Exception as e:
            made[text] = f"{type(e).__name__}: {e}"
    return made


for group in EXPRESSIONS:
    def case(T, group=group):
        return answers(T, group)

    case.__name__ = group
    cases.add(tol=2e-5)(case)


@cases.add()
def what_stays_connected(T):
    """Results of transforms are part of the caller's graph when something of the caller's wants a gradient, and only then."""
    known = names(T)
    F, x, xg, f, g = (known[k] for k in ("F", "x", "xg", "f", "g"))
    w = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    through = F.grad(lambda a: (w * a * a).sum())(x)
    outer = F.grad(f)(xg)
    made = [T.autograd.grad(through.sum(), w), T.autograd.grad(outer.sum(), xg), F.grad(f)(x).requires_grad, F.jacrev(g)(xg).requires_grad]
    output, back = F.vjp(g, xg)
    made += [output.requires_grad, back(x)[0].requires_grad, F.jvp(g, (xg,), (x,))[1].requires_grad]
    with T.no_grad():
        made += [F.grad(f)(xg), F.grad(f)(xg).requires_grad]
    weight = known["m"].weight
    F.functional_call(known["m"], known["d"], x)
    return [*made, known["m"].weight is weight, F.linearize(g, x)[1](x)]


test_golden = cases.test()


def test_a_failed_call_puts_the_parameters_back():
    import ember
    m = ember.nn.Linear(3, 2)
    weight = m.weight
    try:
        ember.func.functional_call(m, {"weight": ember.zeros(2, 3)}, ember.ones(5))
    except RuntimeError:
        assert m.weight is weight and isinstance(m._parameters["weight"], ember.nn.Parameter)
    else:
        raise AssertionError("nothing was refused")


def test_refused_draws_leave_the_generator_as_it_was():
    import ember
    before = ember.get_rng_state()
    try:
        ember.vmap(lambda a: ember.rand(2) + a)(ember.ones(3, 2))
    except RuntimeError:
        assert ember.equal(before, ember.get_rng_state())
    else:
        raise AssertionError("nothing was refused")


if __name__ == "__main__":
    cases.write()
