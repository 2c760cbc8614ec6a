"""Models whose validators are built behind readiness."""

from pydantic import create_model

from service.kit.http.models import complete_models
from service.protocol.base import ProtocolMessage, ProtocolReply
from service.schemas.base import StrictModel


def test_a_model_is_complete_after_the_start_and_not_before():
    models = [
        create_model("Example", __base__=base, __module__="service.example", member=(int, ...))
        for base in (StrictModel, ProtocolMessage, ProtocolReply)
    ]
    assert [model.__pydantic_complete__ for model in models] == [False] * 3
    complete_models()
    assert [model.__pydantic_complete__ for model in models] == [True] * 3
