"""One door: each function of the API has exactly the parameters of its request, with the same defaults."""

import inspect
from typing import get_type_hints

import pytest

from boosters_eval import api
from boosters_eval.engine.settings import RunOptions, RunSettings
from boosters_eval.programs.benchmark.request import Measuring, MeasuringOptions


def options_of(typed_dict):
    return set(get_type_hints(typed_dict, localns=vars(api)).keys()) if typed_dict else set()


def unpacked(function):
    """The keyword arguments that a function takes by Unpack."""
    text = str(function.__annotations__.get("settings", ""))
    return {"Unpack[RunOptions]": RunOptions, "Unpack[MeasuringOptions]": MeasuringOptions}.get(text)


@pytest.mark.parametrize("name", api.DOORS)
def test_a_function_has_the_parameters_of_its_request_and_their_defaults(name):
    function, request = getattr(api, name), api.DOORS[name]
    given = {each.name: each for each in inspect.signature(function).parameters.values() if each.name != "settings"}
    packed = unpacked(function)
    named = set(given) | (set(packed.__annotations__) | _inherited(packed) if packed else set())
    assert named == {each.name for each in request.parameters.values() if each.door != "options"}
    for parameter in given.values():
        declared = request.parameters[parameter.name]
        if declared.required:
            assert parameter.default is parameter.empty
        else:
            assert parameter.default == declared.default, parameter.name


def _inherited(typed_dict):
    return {name for base in getattr(typed_dict, "__orig_bases__", ()) for name in getattr(base, "__annotations__", ())}


def test_keyword_arguments_are_the_fields_of_the_settings():
    fields = {each.name for each in RunSettings.parameters.values() if each.door != "options"}
    assert set(RunOptions.__annotations__) == fields
    assert set(MeasuringOptions.__annotations__) == fields | set(Measuring.parameters)
