"""The shapes of tariffs are planning's classes, member for member; prices and times come back as sent."""

import json
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from enum import StrEnum
from typing import Literal, get_args

import pytest
from pydantic import MISSING

from service.examples import EXAMPLES
from service.planning.tariff import charges as planning
from service.questions import tariffs as shapes
from service.questions.tariffs import TariffTerms, to_planning

KINDS = shapes._KINDS
SHAPES = {
    get_args(shape.model_fields["kind"].annotation)[0]: shape
    for shape in get_args(get_args(shapes.TariffCharge)[0])
}
PARTS = [
    *((SHAPES[kind], KINDS[kind]) for kind in KINDS),
    (shapes.PriceTier, planning.Tier),
    (shapes.PricePeriod, planning.PricePeriod),
    (shapes.BillingDemand, planning.BillingDemand),
    (shapes.DemandRatchet, planning.Ratchet),
    (shapes.TariffRevision, planning.Revision),
    (shapes.TariffTerms, planning.Tariff),
    (shapes.PeakSet, planning.PeakSet),
]
EXAMPLE = EXAMPLES["create_tariff"]


def read(document):
    return to_planning(TariffTerms.model_validate_json(json.dumps(document)))


def test_every_kind_of_charge_has_a_shape():
    kinds = {
        kind
        for kind in vars(planning).values()
        if isinstance(kind, type) and issubclass(kind, planning.Charge)
    }
    assert set(KINDS.values()) == kinds - {planning.Charge}
    assert set(SHAPES) == set(KINDS)


@pytest.mark.parametrize(("shape", "planned"), PARTS, ids=lambda part: part.__name__)
def test_members_and_defaults_are_the_same(shape, planned):
    members = {name: info for name, info in shape.model_fields.items() if name != "kind"}
    planned_members = {field.name: field for field in fields(planned)}
    assert set(members) == set(planned_members)
    for name, field in planned_members.items():
        info = members[name]
        if field.default is NO_DEFAULT:
            assert info.is_required() or (planned, name) == (planning.PeakSet, "price"), name
        elif info.default is not MISSING:
            assert shapes._READ.get(name, shapes._same)(info.default) in (
                field.default,
                tuple(field.default) if field.default == frozenset() else field.default,
            ), name


@pytest.mark.parametrize(
    ("shape", "enum"),
    [
        (shapes.OnHolidays, planning.OnHolidays),
        (shapes.TierUnit, planning.TierUnit),
        (shapes.ChargedPer, planning.Per),
        (shapes.Proration, planning.Proration),
    ],
)
def test_named_choices_are_those_of_planning(shape, enum):
    assert list(get_args(shape.__value__)) == [member.value for member in enum]


@pytest.mark.parametrize(("shape", "planned"), PARTS, ids=lambda part: part.__name__)
def test_choices_are_those_of_planning(shape, planned):
    for field in fields(planned):
        annotation = shape.model_fields[field.name].annotation
        if isinstance(field.default, StrEnum) and getattr(annotation, "__origin__", None) is Literal:
            assert list(get_args(annotation)) == [member.value for member in type(field.default)]
