"""One door: each function of the API has exactly the parameters of its request, with the same defaults."""

import inspect

import pytest

from boosters_eval import api
from boosters_eval.core.request import load_request
from boosters_eval.engine.settings import RunOptions, RunSettings
from boosters_eval.programs.benchmark.request import Measuring, MeasuringOptions
from boosters_eval.programs.bisect.request import BisectionOptions

UNPACKED = {f"Unpack[{options.__name__}]": options for options in (RunOptions, MeasuringOptions, BisectionOptions)}


def apart(function):
    """The parameters that a signature names, and the keyword arguments that it takes by Unpack."""
    parameters = inspect.signature(function).parameters.values()
    packed = [each.annotation for each in parameters if each.kind is each.VAR_KEYWORD]
    named = {each.name: each for each in parameters if each.kind is not each.VAR_KEYWORD}
    return named, {name for annotation in packed for name in UNPACKED[annotation].__annotations__}


@pytest.mark.parametrize("name", [*api.DOORS, "prepare_bisection"])
def test_a_function_has_the_parameters_of_its_request_and_their_defaults(name):
    function, request = getattr(api, name), load_request(api.DOORS.get(name, "bisect"))
    given, packed = apart(function)
    named = given.keys() | packed
    assert named == {each.name for each in request.parameters.values() if each.door != "options"}
    for parameter in given.values():
        declared = request.parameters[parameter.name]
        if declared.required:
            assert parameter.default is parameter.empty
        else:
            assert parameter.default == declared.default, parameter.name


def test_keyword_arguments_are_the_fields_of_the_settings():
    fields = {each.name for each in RunSettings.parameters.values() if each.door != "options"}
    assert set(RunOptions.__annotations__) == fields
    assert set(MeasuringOptions.__annotations__) == fields | set(Measuring.parameters)
