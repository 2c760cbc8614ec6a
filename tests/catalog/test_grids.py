"""Grids in time over HTTP: from published tables to the emissions of a run, on both databases."""

from pathlib import Path

import pytest

from service.app.examples import EXAMPLES, REFERENCE_QUESTION
from tests.prepared import ON_SQLITE

DATA = Path(__file__).parents[1] / "data" / "grid"
STARTS_AT = "2026-01-01T08:00:00Z"
SMALL = {**REFERENCE_QUESTION, "workload": {**REFERENCE_QUESTION["workload"], "total_tokens": 10**11}}


def table(**changes):
    """A week of the marginal emissions of 17 regions."""
    content = (DATA / "avert-2023-co2-lb-per-kwh-168h.csv").read_text()
    return {**EXAMPLES["import_grid"], "content": content, **changes}


def error(response):
    first = response.json()["errors"][0]
    return response.status_code, first["code"], first["pointer"]


def bill(client, revision, **members):
    headers = {"Catalog-Revision": revision}
    answer = client.post(
        "/v1/estimates/utility-bill", {**SMALL, "starts_at": STARTS_AT, **members}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_marginal_table_becomes_a_grid(client):
    made = client.post("/v1/grids:import", table())
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/v1/grids/example-marginal"
    grid, (warning,) = made.json()["grid"], made.json()["warnings"]
    assert (grid["emission_rate"], grid["greenhouse_gases"], grid["accounting"]) == (
        "marginal",
        "co2",
        "generation",
    )
    assert grid["series"]["kg_co2e_per_kwh"][0] == pytest.approx(0.5035, abs=5e-5)
    assert len(grid["series"]["kg_co2e_per_kwh"]) == 168
    assert warning["code"] == "YEAR_INCOMPLETE"
    assert client.get("/v1/grids/example-marginal").json() == grid
    listed = client.get("/v1/grids?emission_rate=marginal").json()["items"]
    assert [row["id"] for row in listed] == ["example-marginal"]


def test_its_hours_are_those_of_the_run(client):
    """A day from midnight in Los Angeles: the first hours of the table, at one power."""
    made = client.post("/v1/grids:import", table())
    site = {"pue": 1.0, "grid_id": "egrid-us-camx", "marginal_grid_id": "example-marginal"}
    answer = bill(client, made.headers["catalog-revision"], site=site)
    rates = made.json()["grid"]["series"]["kg_co2e_per_kwh"]
    hours = answer["duration_seconds"]["value"] / 3600
    whole = int(hours)
    expected = (sum(rates[:whole]) + (hours - whole) * rates[whole]) / hours
    kwh = answer["energy"]["facility_kwh"]["value"]
    assert answer["carbon"]["marginal_kg_co2e"]["value"] == pytest.approx(kwh * expected, rel=1e-9)
    assert answer["carbon"]["marginal_method"]["in_time"] is True
    assert answer["carbon"]["location_based_kg_co2e"]["value"] == pytest.approx(kwh * 0.195037, rel=1e-3)


def test_months_by_hours_become_an_average(client):
    content = (DATA / "eeco-month-hour-emissions.csv").read_text()
    made = client.post("/v1/grids:import", table(format="month_hour_csv", content=content))
    assert made.status_code == 201, made.text
    grid = made.json()["grid"]
    assert (grid["emission_rate"], grid["greenhouse_gases"]) == ("average", "co2e")
    assert grid["carbon_intensity_kg_co2e_per_kwh"] == pytest.approx(
        sum(grid["series"]["kg_co2e_per_kwh"]) / 288
    )
    assert made.json()["warnings"] == []
    site = {"pue": 1.0, "grid_id": "example-marginal"}
    answer = bill(client, made.headers["catalog-revision"], site=site)
    assert answer["carbon"]["location_based_method"]["in_time"] is True


@ON_SQLITE
def test_what_cannot_be_imported_names_the_member(client):
    post = lambda **changes: error(client.post("/v1/grids:import", table(**changes)))  # noqa: E731
    assert post(code="XX") == (422, "REGION_UNKNOWN", "/code")
    assert post(content="Month,Timestamp,CA\n1,1,1.0\n") == (422, "GRID_FILE", "/content")
    assert post(time_zone="Mars/Olympus") == (422, "TIME_ZONE_UNKNOWN", "/time_zone")
    assert post(format="month_hour_csv") == (422, "GRID_FILE", "/content")


@ON_SQLITE
def test_a_series_by_an_unknown_clock_is_refused(client):
    series = {"kind": "hours_of_year", "time_zone": "Mars/Olympus", "kg_co2e_per_kwh": [0.1]}
    refused = client.post("/v1/grids", {**EXAMPLES["create_grid"], "series": series})
    assert error(refused) == (422, "TIME_ZONE_UNKNOWN", "/series/time_zone")


@ON_SQLITE
def test_an_accelerator_says_what_making_it_emits(client):
    own = {
        **EXAMPLES["create_accelerator"],
        "embodied_kg_co2e": {"value": 200.0, "low": 150.0, "high": 300.0},
    }
    made = client.post("/v1/accelerators", own)
    assert made.status_code == 201, made.text
    assert made.json()["embodied_kg_co2e"] == own["embodied_kg_co2e"]
    upside_down = {**own, "id": "other", "embodied_kg_co2e": {"value": 1.0, "low": 2.0, "high": 3.0}}
    assert client.post("/v1/accelerators", upside_down).status_code == 422
