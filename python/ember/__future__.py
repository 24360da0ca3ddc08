"""Whether Module.to() and its kin keep parameters or make new ones."""

_overwrite_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value):
    """With True, conversions of a module give it new Parameter objects; with False the old ones get new data."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion():
    """What set_overwrite_module_params_on_conversion() was told last; False at first."""
    return _overwrite_module_params_on_conversion
