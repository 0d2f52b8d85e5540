"""The base of all declared data: frozen, unknown keys refused, mistakes reported in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticSerializationError

from boosters_eval.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ModelWrapValidatorHandler
    from pydantic_core import CoreSchema, ErrorDetails


def _stop_early(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in {"list", "tuple", "set", "frozenset"}:
            schema["fail_fast"] = True
        for part in schema.values():
            _stop_early(part)
    elif isinstance(schema, list):
        for part in schema:
            _stop_early(part)


class FileModel(BaseModel):
    """A model of what is read from files. A list is refused at its first fault, because there may be millions.

    Where pydantic calls functions of ours to write it, Ctrl-C stays what it is; pydantic would make an error of it.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's own, with every list told to stop at its first fault."""
        schema = handler(source)
        _stop_early(schema)
        return schema

    def model_dump(self, **options: Any) -> dict[str, Any]:
        try:
            return super().model_dump(**options)
        except PydanticSerializationError as error:
            _raise_interruption(error)
            raise

    def model_dump_json(self, **options: Any) -> str:
        try:
            return super().model_dump_json(**options)
        except PydanticSerializationError as error:
            _raise_interruption(error)
            raise


def _raise_interruption(error: PydanticSerializationError) -> None:
    """Raise the interruption that pydantic took for an error of a function; it keeps no more of it than the name."""
    if KeyboardInterrupt.__name__ in str(error):
        raise KeyboardInterrupt from None


class Model(FileModel):
    """A frozen pydantic model whose validation errors are the user's one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)

    def __init__(self, *positional: Any, **data: Any) -> None:
        """The fields by name, or by position in the order of their declaration, as a dataclass takes them."""
        try:
            super().__init__(**_named(type(self), positional, data))
        except ValidationError as error:
            raise explain_error(type(self), error) from None

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise explain_error(cls, error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise explain_error(cls, error) from None

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Inside another model too, a mistake is told in the words of the model that it is in."""
        try:
            return handler(data)
        except ValidationError as error:
            raise explain_error(cls, error) from None

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed, validated again; a field that was left at its default stays so."""
        return type(self)(**{**{name: getattr(self, name) for name in self.model_fields_set}, **changes})

    def __replace__(self, **changes: Any) -> Self:
        """For `copy.replace`, which Python has since 3.13."""
        return self.replace(**changes)


def _named(model: type[BaseModel], positional: tuple[Any, ...], data: dict[str, Any]) -> dict[str, Any]:
    if not positional:
        return data
    names = list(model.model_fields)
    if len(positional) > len(names):
        raise ConfigError(f"{model.__name__} has {len(names)} parameters. Got {len(positional)} values instead.")
    given = dict(zip(names, positional, strict=False))
    doubled = next((name for name in given if name in data), None)
    if doubled:
        raise ConfigError(f"The '{doubled}' parameter of {model.__name__} is given twice: by position and by name.")
    return {**given, **data}


def explain_error(model: type[BaseModel], error: ValidationError) -> ConfigError:
    """The user's one sentence: what a validator of our own said, or what is wrong with the first offending field."""
    cause = find_first_error(error).get("ctx", {}).get("error")
    return cause if isinstance(cause, ConfigError) else ConfigError(describe_error(model, error))


def find_first_error(error: ValidationError) -> ErrorDetails:
    """The first mistake; if that is a missing field, then the one unknown field that is like it, if there is one."""
    errors = error.errors(include_url=False)
    if errors[0]["type"] != "missing":
        return errors[0]
    unknown = [each for each in errors if each["type"] == "extra_forbidden"]
    alike = len(unknown) == 1 and suggest(str(unknown[0]["loc"][-1]), [str(errors[0]["loc"][-1])])
    return unknown[0] if alike else errors[0]


def describe_error(model: type[BaseModel], error: ValidationError) -> str:
    """What is wrong with the first offending field, in the project's one form."""
    first = find_first_error(error)
    name = ".".join(str(part) for part in first["loc"]) or model.__name__
    if first["type"] == "extra_forbidden":
        return f"{model.__name__} has no parameter '{name}'.{suggest(name, model.model_fields)}"
    if first["type"] == "missing":
        return f"The '{name}' parameter of {model.__name__} is required."
    expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    expected = expected.partition(", unable to parse")[0]
    return f"The '{name}' parameter of {model.__name__} must be {expected}. Got {first['input']!r} instead."
