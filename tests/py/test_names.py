"""dir(ember) promises nothing that is not there."""

import ember


def test_every_listed_name_exists():
    missing = [name for name in dir(ember) if not hasattr(ember, name)]
    assert not missing


def test_an_absent_name_is_an_attribute_error():
    assert not hasattr(ember, "no_such_thing") and "no_such_thing" not in dir(ember)
    assert not hasattr(ember, "quantize_per_tensor")
