"""Schemas and overloads as objects: PyTorch's text, arguments and tags (tests/api/schemas.txt), and what programs ask of them."""
import os
import pickle
import sys

import ember as torch
import pytest

API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api")


@pytest.fixture(scope="module")
def make_schemas():
    os.environ["EMBER_TEST_MODULE"] = "ember"
    sys.path.insert(0, API)
    try:
        import make_schemas
        return make_schemas
    finally:
        sys.path.remove(API)
        del os.environ["EMBER_TEST_MODULE"]


def test_every_schema_is_pytorchs(make_schemas):
    with open(os.path.join(API, "schemas.txt"), encoding="utf-8") as file:
        want = {line.split(" ", 2)[2].split("(")[0]: line.rstrip("\n") for line in file}
    assert len(want) > 1700
    got = {name: make_schemas.line(name) for name in want}
    differ = {name: (got[name], want[name]) for name in want if got[name] != want[name]}
    assert differ == {}


def test_a_schema_reads_what_it_prints():
    schemas = torch._C._jit_get_all_schemas()
    assert len(schemas) > 1700 and all(isinstance(s, torch._C.FunctionSchema) for s in schemas)
    for schema in schemas:
        again = torch._C.parse_schema(str(schema))
        assert again == schema and str(again) == str(schema) and hash(again) == hash(schema)


def test_the_parts_of_a_schema():
    schema = torch.ops.aten.add.Tensor._schema
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    alpha = schema.arguments[2]
    assert isinstance(alpha, torch._C.Argument)
    assert (alpha.name, str(alpha.type), alpha.default_value, alpha.kwarg_only, alpha.alias_info) == ("alpha", "number", 1, True, None)
    assert alpha.has_default_value() and not schema.arguments[0].has_default_value()
    written = torch.ops.aten.add_.Tensor._schema
    assert written.is_mutable and written.arguments[0].alias_info.is_write
    assert written.arguments[0].alias_info.before_set == {"a"}
    pool = torch.ops.aten.max_pool2d.default._schema.arguments
    assert (pool[1].N, pool[2].default_value, pool[3].default_value, str(pool[1].type)) == (2, [], [0, 0], "List[int]")
    assert torch._C.TensorType.get() == schema.arguments[0].type
    assert torch._C.OptionalType.ofTensor() == torch.ops.aten.conv2d.default._schema.arguments[2].type
    assert torch._C.ListType.ofInts().getElementType() == torch._C.IntType.get()
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_parse_schema():
    schema = torch._C.parse_schema("my::f(Tensor x, int n=1, *, Tensor(a!) out) -> (Tensor(a!), Tensor z)")
    assert str(schema) == "my::f(Tensor x, int n=1, *, Tensor(a!) out) -> (Tensor(a!), Tensor z)"
    assert schema.name == "my::f" and [r.name for r in schema.returns] == ["", "z"] and schema.arguments[2].is_out
    for bad in ("", "f(", "my::f(Tensor x) -> Foo", "f(Tensor x"):
        with pytest.raises(RuntimeError):
            torch._C.parse_schema(bad)
    longer = torch._C.parse_schema("my::f(Tensor x, int n=1, *, bool b=False) -> Tensor")
    shorter = torch._C.parse_schema("my::f(Tensor x, int n=1) -> Tensor")
    assert longer.is_backward_compatible_with(shorter) and not shorter.is_backward_compatible_with(longer)
    assert longer.check_forward_compatible_with(longer) == (True, "")


def test_schemas_by_name():
    names = {s.overload_name for s in torch._C._jit_get_schemas_for_operator("aten::sum")}
    assert {"", "dim_IntList", "out"} <= names
    assert torch._C._get_schema("aten::add", "Tensor") == torch.ops.aten.add.Tensor._schema
    with pytest.raises(RuntimeError, match="no matching schema"):
        torch._C._get_schema("aten::add", "nothing")
    assert torch._C._jit_get_schemas_for_operator("aten::no_such") == []


def test_overloads_and_packets():
    op = torch.ops.aten.add.Tensor
    assert (op.name(), op.namespace, op._opname, op._overloadname) == ("aten::add.Tensor", "aten", "add", "Tensor")
    assert op.overloadpacket is torch.ops.aten.add and str(op.overloadpacket) == "aten.add"
    packet = torch.ops.aten.relu
    assert packet.overloads()[0] == "default" and packet.default is torch.ops.aten.relu.default
    assert packet._overload_names[0] == "" and str(packet._schemas[""]) == "aten::relu(Tensor self) -> Tensor"
    assert "Tensor" in dir(torch.ops.aten.add)
    assert torch.Tag.core in op.tags and torch.Tag.pointwise in op.tags and repr(torch.Tag.core) == "<Tag.core: 0>"
    assert torch.Tag.nondeterministic_seeded in torch.ops.aten.rand.default.tags


def test_an_operator_of_a_program_has_a_schema():
    library = torch.library.Library("schema_test", "DEF")
    library.define("f(Tensor x, float[] w=[0.5, 2], str mode='a') -> (Tensor, Tensor)")
    op = torch.ops.schema_test.f.default
    assert str(op._schema) == 'schema_test::f(Tensor x, float[] w=[0.5, 2.], str mode="a") -> (Tensor, Tensor)'
    assert op._schema.arguments[1].default_value == [0.5, 2.0] and op.tags == []
