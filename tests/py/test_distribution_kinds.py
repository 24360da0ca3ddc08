# lint: table
"""torch.distributions: every kind of distribution, transform and divergence against PyTorch: draws for a seed, densities, moments,
gradients, reprs, complaints."""

import os
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases

cases = Cases(__file__)
M = "T.tensor([[2.,.3],[.3,1.]])"
KINDS = {
    "Beta": "D.Beta(t(.5,2.,30.),t(1.5,.3,20.))",
    "Gamma": "D.Gamma(t(.3,2.,30.),t(1.5,.3,20.))",
    "Chi2": "D.Chi2(t(.5,2.,30.))",
    "Dirichlet": "D.Dirichlet(T.tensor([[.5,2.,3.],[20.,.1,9.]]))",
    "Poisson": "D.Poisson(t(.5,3.,30.))",
    "Binomial": "D.Binomial(12,probs=t(.1,.5,.9))",
    "Binomial_logits": "D.Binomial(100,logits=t(.1,.5,-.9))",
    "NegativeBinomial": "D.NegativeBinomial(t(5.,3.,0.),probs=t(.1,.5,.9))",
    "Geometric": "D.Geometric(t(.1,.5,.9))",
    "Cauchy": "D.Cauchy(t(.1,.5,.9),t(1.,2.,3.))",
    "HalfCauchy": "D.HalfCauchy(t(1.,2.,3.))",
    "HalfNormal": "D.HalfNormal(t(1.,2.,3.))",
    "StudentT": "D.StudentT(t(.5,1.5,3.),t(1.,2.,3.),t(.3,.4,.5))",
    "FisherSnedecor": "D.FisherSnedecor(t(.5,1.5,3.),t(1.,2.5,5.))",
    "Gumbel": "D.Gumbel(t(1.,2.,3.),t(.3,.4,.5))",
    "Kumaraswamy": "D.Kumaraswamy(t(1.,2.,3.),t(.3,1.4,.5))",
    "Pareto": "D.Pareto(t(1.,2.,3.),t(.3,1.4,2.5))",
    "Weibull": "D.Weibull(t(1.,2.,3.),t(.3,1.4,2.5))",
    "InverseGamma": "D.InverseGamma(t(1.,2.,3.),t(.3,1.4,2.5))",
    "LogisticNormal": "D.LogisticNormal(t(1.,2.,3.),t(.3,1.4,2.5))",
    "LogNormal": "D.LogNormal(t(1.,.2,.3),t(.3,.4,.5))",
    "RelaxedBernoulli": "D.RelaxedBernoulli(T.tensor(.7),probs=t(.3,.4,.5))",
    "RelaxedOneHotCategorical": "D.RelaxedOneHotCategorical(T.tensor(.7),probs=t(.3,.2,.5))",
    "OneHotCategorical": "D.OneHotCategorical(probs=t(.3,.2,.5))",
    "OneHotCategoricalStraightThrough": "D.OneHotCategoricalStraightThrough(probs=t(.3,.2,.5))",
    "Multinomial": "D.Multinomial(10,probs=t(.3,.2,.5))",
    "MultivariateNormal": f"D.MultivariateNormal(t(1.,2.),covariance_matrix={M})",
    "MultivariateNormal_precision": f"D.MultivariateNormal(T.tensor([[1.,2.],[3.,4.]]),precision_matrix={M})",
    "MultivariateNormal_tril": f"D.MultivariateNormal(t(1.,2.),scale_tril=T.stack([{M}.tril(),2*{M}.tril()]))",
    "LowRankMultivariateNormal": "D.LowRankMultivariateNormal(t(1.,2.,3.),T.tensor([[1.],[.5],[.2]]),t(.5,.6,.7))",
    "MixtureSameFamily": "D.MixtureSameFamily(D.Categorical(t(.3,.7)),D.Normal(t(-1.,2.),t(.5,1.)))",
    "MixtureSameFamily_vectors": "D.MixtureSameFamily(D.Categorical(t(.3,.7)),D.Independent(D.Normal(T.tensor([[-1.,0.],[2.,3.]]),"
                                 "T.tensor([[.5,1.],[1.,2.]])),1))",
    "TransformedDistribution": "D.TransformedDistribution(D.Normal(t(0.,1.),t(1.,2.)),[D.SigmoidTransform(),D.AffineTransform(1.,-3.)])",
    "Normal": "D.Normal(t(.1,.5,.9),t(1.,2.,3.))",
    "Laplace": "D.Laplace(t(.1,.5,.9),t(1.,2.,3.))",
    "Exponential": "D.Exponential(t(1.,2.,3.))",
    "Uniform": "D.Uniform(t(.1,.5,.9),t(1.,2.,3.))",
    "Bernoulli": "D.Bernoulli(t(.1,.5,.9))",
    "Categorical": "D.Categorical(t(.1,.5,.9))",
    "Independent": "D.Independent(D.Normal(t(.1,.5,.9),t(1.,2.,3.)),1)",
    "VonMises": "D.VonMises(t(.1,.5,-2.),t(1.,2.,3.))",
    "ContinuousBernoulli": "D.ContinuousBernoulli(t(.1,.5,.9))",
    "GeneralizedPareto": "D.GeneralizedPareto(t(0.,1.,2.),t(1.,2.,.5),t(.2,0.,-.3))",
    "LKJCholesky": "D.LKJCholesky(3,1.5)",
    "Wishart": f"D.Wishart(T.tensor(4.),covariance_matrix={M})",
    "Wishart_batch": f"D.Wishart(T.tensor([4.,5.]),precision_matrix={M})",
}
# A second instance of some, for divergences.
OTHERS = {
    "Beta": "D.Beta(t(1.5,.7,3.),t(.5,1.3,2.))", "Gamma": "D.Gamma(t(1.3,1.,20.),t(.5,1.3,10.))",
    "Dirichlet": "D.Dirichlet(T.tensor([[1.5,1.,3.],[2.,.3,9.]]))", "Normal": "D.Normal(t(.2,.4,.9),t(2.,2.,1.))",
    "MultivariateNormal": f"D.MultivariateNormal(t(0.,1.),covariance_matrix=2*{M})",
    "LowRankMultivariateNormal": "D.LowRankMultivariateNormal(t(0.,1.,2.),T.tensor([[.7],[1.5],[.2]]),t(.3,.4,.9))",
    "Pareto": "D.Pareto(t(.5,1.,3.),t(2.3,2.4,3.5))", "Uniform": "D.Uniform(t(0.2,.3,.4),t(.5,.6,.7))",
    "Poisson": "D.Poisson(t(1.,2.,20.))", "Geometric": "D.Geometric(t(.2,.4,.8))", "Gumbel": "D.Gumbel(t(1.5,2.,1.),t(1.3,.4,.6))",
    "Cauchy": "D.Cauchy(t(.3,.5,.1),t(2.,2.,1.))", "HalfNormal": "D.HalfNormal(t(1.5,1.,3.))",
    "Binomial": "D.Binomial(12,probs=t(.2,.4,.8))", "Laplace": "D.Laplace(t(.3,.1,.9),t(2.,2.,1.))",
    "Exponential": "D.Exponential(t(2.,2.,1.))", "Bernoulli": "D.Bernoulli(t(.2,.4,.8))",
    "LogNormal": "D.LogNormal(t(0.,.2,.3),t(.3,1.,.5))",
    "ContinuousBernoulli": "D.ContinuousBernoulli(t(.2,.7,.8))", "Categorical": "D.Categorical(t(.2,.4,.8))",
    "OneHotCategorical": "D.OneHotCategorical(probs=t(.2,.4,.8))", "Independent": "D.Independent(D.Normal(t(.2,.4,.9),t(2.,2.,1.)),1)",
}
X = "t(.1,-.5,.9)"
TRANSFORMS = {
    "Exp": ("D.ExpTransform()", X), "Power": ("D.PowerTransform(t(2.,-1.,.5))", "t(.1,.5,.9)"), "Sigmoid": ("D.SigmoidTransform()", X),
    "Softplus": ("D.SoftplusTransform()", X), "Tanh": ("D.TanhTransform()", X), "Abs": ("D.AbsTransform()", X),
    "Affine": ("D.AffineTransform(1.,t(2.,-3.,.1))", X), "Affine_events": ("D.AffineTransform(1.,2.,event_dim=1)", X),
    "Softmax": ("D.SoftmaxTransform()", X), "StickBreaking": ("D.StickBreakingTransform()", X),
    "LowerCholesky": ("D.LowerCholeskyTransform()", M), "PositiveDefinite": ("D.PositiveDefiniteTransform()", M),
    "CorrCholesky": ("D.CorrCholeskyTransform()", X), "Cat": ("D.CatTransform([D.ExpTransform(),D.TanhTransform()],0,[1,2])", X),
    "Stack": ("D.StackTransform([D.ExpTransform(),D.TanhTransform(),D.AffineTransform(1,2)],0)", X),
    "Reshape": ("D.ReshapeTransform((3,),(1,3))", X), "Independent": ("D.IndependentTransform(D.ExpTransform(),1)", X),
    "Compose": ("D.ComposeTransform([D.TanhTransform(),D.AffineTransform(2.,3.),D.StickBreakingTransform()])", X),
    "CumulativeDistribution": ("D.CumulativeDistributionTransform(D.Normal(0.,1.))", X), "identity": ("D.identity_transform", X),
    "biject_to_greater": ("D.biject_to(C.greater_than(2.))", X), "biject_to_interval": ("D.biject_to(C.interval(2.,5.))", X),
    "biject_to_cat": ("D.biject_to(C.cat([C.positive,C.real],0,[1,2]))", X), "biject_to_stack": ("D.biject_to(C.stack([C.positive]*3))", X),
    "transform_to_simplex": ("D.transform_to(C.simplex)", X), "transform_to_definite": ("D.transform_to(C.positive_definite)", M),
    "inverse": ("D.ExpTransform().inv", "t(.1,.5,.9)"), "cached": ("D.TanhTransform(cache_size=1)", X),
}
GRADIENTS = {
    "Gamma": "D.Gamma,t(.3,2.,30.,7.),t(1.5,.3,20.,1.)", "Beta": "D.Beta,t(.5,2.,30.,8.),t(1.5,.3,20.,9.)",
    "Dirichlet": "D.Dirichlet,T.tensor([[.5,2.,3.],[20.,.1,9.],[30.,20.,10.]])", "Gumbel": "D.Gumbel,t(1.,2.),t(.5,.3)",
    "StudentT": "D.StudentT,t(.5,1.5,3.),t(1.,2.,3.),t(.3,.4,.5)", "Kumaraswamy": "D.Kumaraswamy,t(1.,2.),t(.5,.3)",
    "MultivariateNormal": f"lambda m,c: D.MultivariateNormal(m,scale_tril=c),t(1.,2.),{M}.tril()",
    "covariance": f"lambda m,c: D.MultivariateNormal(m,c@c.mT),t(1.,2.),{M}", "Weibull": "D.Weibull,t(1.,2.),t(.5,.3)",
    "LowRankMultivariateNormal": "D.LowRankMultivariateNormal,t(1.,2.,3.),T.tensor([[1.],[.5],[.2]]),t(.5,.6,.7)",
    "RelaxedBernoulli": "D.RelaxedBernoulli,T.tensor(.7),t(.5,.3)",
}
COMPLAINTS = """D.Beta(-1.,2.)|D.Gamma(-1.,1.)|D.MultivariateNormal(T.zeros(2))|D.MultivariateNormal(T.tensor(0.),T.eye(1))
D.MultivariateNormal(T.zeros(2),-T.eye(2))|D.MultivariateNormal(T.zeros(2),T.ones(2))|D.MultivariateNormal(T.zeros(2),scale_tril=T.ones(2))
D.Multinomial(T.tensor(3),T.ones(2))|D.MixtureSameFamily(D.Normal(0,1),D.Normal(0,1))|D.Chi2(-1.)|D.LKJCholesky(1)
D.MixtureSameFamily(D.Categorical(T.ones(2)),D.Normal(T.zeros(3),1.))|D.LogNormal(0.,-1.)|D.HalfNormal(-1.)|D.HalfCauchy(-1.)
D.StudentT(-1.)|D.Geometric(0.)|D.Gumbel(0.,-1.)|D.Pareto(1.,-1.)|D.Wishart(T.tensor(.5),T.eye(2))|D.Dirichlet(T.tensor(1.))
D.LowRankMultivariateNormal(T.zeros(2),T.ones(3,1),T.ones(2))|D.OneHotCategorical(T.tensor([-1.,2.]))
D.LowRankMultivariateNormal(T.zeros(3,2),T.ones(2,2,1),T.ones(2))|D.TransformedDistribution(D.Normal(0,1),3)
D.biject_to(C.one_hot)|D.biject_to.register(3,4)|D.CatTransform([D.ExpTransform()],0,[1])(T.ones(3))|D.ExpTransform(2)
D.StackTransform([D.ExpTransform()],0)(T.ones(3))|D.CatTransform([D.ExpTransform()],0,[1,2])|D.ReshapeTransform((2,),(3,))
D.CatTransform([D.ExpTransform()],2)(T.ones(3))|C.MixtureSameFamilyConstraint(3)|D.CorrCholeskyTransform().forward_shape((2,))
D.kl_divergence(D.Beta(1.,1.),D.Poisson(1.))|D.kl_divergence(D.Normal(0.,1.),D.Categorical(T.ones(2)))
D.Binomial(T.tensor([1,2]),T.tensor(.5)).entropy()
D.kl_divergence(D.MultivariateNormal(T.zeros(2),T.eye(2)),D.MultivariateNormal(T.zeros(3),T.eye(3)))|D.Poisson(3.).entropy()
D.Binomial(T.tensor([1,2]),T.tensor(.5)).enumerate_support()|T.poisson(t(-1.))|T.binomial(t(1,2),t(.5,.5))
T.poisson(T.ones(2,dtype=T.int64))
T.binomial(T.ones(2),T.ones(2,dtype=T.float64))|T._standard_gamma(T.ones(2).half())|T._sample_dirichlet(T.ones(2).half())
T._standard_gamma_grad(T.ones(2),T.ones(2).double())|T._dirichlet_grad(T.ones(2).half(),T.ones(2).half(),T.ones(2).half())
T.binomial(T.ones(1),T.ones(1,requires_grad=True)).backward()|T._sample_dirichlet(T.ones(1,requires_grad=True)).backward()
T._standard_gamma_grad(T.ones(1,requires_grad=True),T.ones(1)).backward()|D.Independent(D.Bernoulli(t(.5,.5)),1).enumerate_support()"""


def run(T, text, **names):
    """What an expression gives: its value, or its complaint."""
    import importlib
    D = importlib.import_module(T.__name__ + ".distributions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(text, {"T": T, "D": D, "C": D.constraints, "t": lambda *v: T.tensor(v), **names})
        except Exception as e:
            return f"{type(e).__name__}: {e}".split("\n[in operator ")[0]
    return value if isinstance(value, (T.Tensor, tuple, list, str, bool, int, float)) else repr(value)


def kind(T, name):
    d = eval(KINDS[name], {"T": T, "D": T.distributions, "t": lambda *v: T.tensor(v)})
    result = {"repr": repr(d), "shapes": [tuple(d.batch_shape), tuple(d.event_shape)], "rsample": d.has_rsample,
              "enumerates": d.has_enumerate_support, "arguments": repr(sorted(d.arg_constraints.items()))}
    for text in ("d.support", "d.mean", "d.mode", "d.variance", "d.stddev", "d.entropy()", "d.enumerate_support()",
                 "d.icdf(T.full((1,)*(len(d.event_shape)+1),.3))"):
        result[text] = run(T, text, d=d)
    for text in ("d.sample((3,))", "d.rsample((2,))", "d.expand((2,)+d.batch_shape).sample()"):
        T.manual_seed(3)
        result[text] = run(T, text, d=d)
    T.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = d.sample((2,))
    result["stream"] = T.rand(1)  # as many numbers were drawn
    for text in ("d.log_prob(x)", "d.cdf(x)", "d.expand((2,)+d.batch_shape).log_prob(x)", "d.log_prob(x-1e3)"):
        result[text] = run(T, text, d=d, x=x)
    return result


def transform(T, name):
    make, x = TRANSFORMS[name]
    result = {}
    for text in ("f(x)", "f.inv(f(x))", "f.log_abs_det_jacobian(x,f(x))", "f.inv.log_abs_det_jacobian(f(x),x)", "f", "f.inv", "f.domain",
                 "f.codomain", "f.bijective", "f.sign", "f.event_dim", "tuple(f.forward_shape(T.Size((2,3))))",
                 "tuple(f.inverse_shape(T.Size((2,3,3))))", f"f=={make}", "f.inv.inv is f", "f==D.ExpTransform()",
                 "f.with_cache().inv(f(x))"):
        f = run_object(T, make)
        result[text] = run(T, text, f=f, x=run(T, x))
    return result


def run_object(T, text):
    D = T.distributions
    return eval(text, {"T": T, "D": D, "C": D.constraints, "t": lambda *v: T.tensor(v)})


def divergences(T, name):
    return {q: run(T, f"D.kl_divergence({OTHERS[name]},{OTHERS[q]})") for q in OTHERS} | {
        "itself": run(T, f"D.kl_divergence({OTHERS[name]},{KINDS[name]})")}


def gradients(T, name):
    make, *given = run_object(T, f"({GRADIENTS[name]})")
    params = [p.clone().requires_grad_() for p in given]
    T.manual_seed(7)
    x = make(*params).rsample((3,))
    drawn = T.autograd.grad((x * T.linspace(.5, 2., x.numel()).reshape(x.shape)).sum(), params)
    return [drawn, T.autograd.grad(make(*params).log_prob(x.detach()).sum(), params)]


def add(table, prefix, function, tol):
    for name in table:
        def case(T, name=name):
            import importlib
            importlib.import_module(T.__name__ + ".distributions")
            return function(T, name)
        case.__name__ = f"{prefix}_{name}"
        cases.add(tol=tol)(case)


add(KINDS, "kind", kind, 3e-5)
add(TRANSFORMS, "transform", transform, 1e-5)
add(OTHERS, "kl", divergences, 3e-5)
add(GRADIENTS, "gradient", gradients, 1e-4)


@cases.add()
def complaints(T):
    return {text: run(T, text) for text in COMPLAINTS.replace("\n", "|").split("|")}


@cases.add(tol=0)
def streams(T):
    """Sums over many draws, exactly: one number that differed would show."""
    result = {}
    for dtype in (T.float32, T.float64):
        T.manual_seed(1)
        scale = T.tensor([.1, 1, 10, 100, 1e4], dtype=dtype).repeat(2000)
        rate = T.rand(10000, dtype=dtype) * scale
        counts, prob = (T.rand(10000, dtype=dtype) * scale * 10).floor(), T.rand(10000, dtype=dtype)
        result[str(dtype)] = [T.poisson(rate).double().sum(), T.binomial(counts, prob).double().sum(),
                              (T._standard_gamma(rate) > rate).sum(), T.poisson(rate[:600].reshape(20, 30).t())[:3, :5],
                              T.poisson(rate[:50].to(T.bfloat16)), T.binomial(counts[:3].view(3, 1), prob[:2])]
    return result


@cases.add(tol=1e-6)
def slopes(T):
    """How gamma and Dirichlet draws change with their parameters, in every region of the formulas."""
    result = []
    for dtype in (T.float32, T.float64):
        T.manual_seed(2)
        alpha = T.rand(60, dtype=dtype) * T.tensor([.1, 1, 10, 100, 1000], dtype=dtype).repeat(12)
        result.append(T._standard_gamma_grad(alpha, T._standard_gamma(alpha)))
        parts = T.rand(60, 3, dtype=dtype) * T.tensor([.1, 1, 10, 100], dtype=dtype).repeat(15)[:, None]
        x = T._sample_dirichlet(parts)
        result.append(T._dirichlet_grad(x, parts, parts.sum(-1, True).expand_as(parts)) if dtype == T.float64 else x)
        result.append(T._standard_gamma_grad(T.tensor([2., 9., 9., 9.], dtype=dtype), T.tensor([.5, 9., 5., 20.], dtype=dtype)))
    return result


test_golden = cases.test()


def test_a_count_that_is_not_a_number_does_not_hang():
    import ember
    nan = float("nan")
    assert ember.binomial(ember.tensor([nan, 3.0]), ember.tensor([0.5, nan])).isnan().all()
    assert ember.binomial(ember.tensor([nan, 3.0]), ember.tensor([0.0, 1.0])).tolist() == [0.0, 3.0]


def test_every_name_of_distributions_is_here():
    import ember.distributions as D
    assert set(KINDS) >= {name for name in D.__all__ if isinstance(getattr(D, name), type) and issubclass(getattr(D, name), D.Distribution)
                          and name not in ("Distribution", "ExponentialFamily")}


if __name__ == "__main__":
    cases.write()
