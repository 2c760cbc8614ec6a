"""The models of the service, whose validators are not built when they are imported."""

from collections.abc import Iterator

from pydantic import BaseModel


def list_models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """Yields the models of the service that are imported, each after those that it extends."""
    for model in base.__subclasses__():
        if model.__module__.startswith("service."):
            yield model
        yield from list_models(model)


def complete_models() -> None:
    """Builds the validators of all models. A model that is used before builds its own."""
    for model in list_models():
        model.model_rebuild()
