"""A folder of dated prices that an operator keeps fresh at the command line."""

import pytest

from tests.prepared import fill_directory
from tests.serving import run

OFFERS = (
    "provider,product,catalog_accelerator_id,accelerator_count,region,purchase_option,commitment_note,"
    "price_per_hour,currency,as_of,source_url"
)
NODE = "own,node-8,h100-sxm,8,eu,on_demand,,{price},USD,{day},https://prices.example/list"
OTHER = "own,node-1,l4,1,eu,on_demand,,0.7,USD,2026-11-01,https://prices.example/list"
WRONG = "own,node-2,l4,1,eu,on_demand,,much,USD,2026-11-01,https://prices.example/list"
TOKENS = "provider,model,input_per_million,output_per_million,currency,as_of,source_url"
PRICED = "own,some-model,0.5,1.5,USD,2026-11-01,https://prices.example/tokens"


@pytest.fixture
def data_dir(tmp_path):
    path = tmp_path / "data"
    fill_directory(path)
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "prices"
    path.mkdir()
    return path


def fill(folder, *rows, name="gpu-offers.csv", header=OFFERS):
    (folder / name).write_text("\n".join((header, *rows)) + "\n")


def refresh(folder, data_dir, *options):
    return run("offers", "refresh", str(folder), *options, data_dir=data_dir)


def test_a_folder_is_stored_once_and_a_changed_price_is_a_new_version(folder, data_dir):
    fill(folder, NODE.format(price=24, day="2026-11-01"), OTHER)
    fill(folder, PRICED, name="token-prices.csv", header=TOKENS)
    out, errors, status = refresh(folder, data_dir)
    assert (errors, status) == ("", 0)
    assert "gpu-offers.csv: 2 rows: 2 new, 0 changed, 0 the same" in out
    assert "token-prices.csv: 1 rows: 1 new, 0 changed, 0 the same" in out
    assert "2 rows: 0 new, 0 changed, 2 the same" in refresh(folder, data_dir)[0]
    fill(folder, NODE.format(price=20, day="2026-11-20"))
    out = refresh(folder, data_dir)[0]
    assert "1 rows: 0 new, 1 changed, 0 the same" in out
    assert "1 of the tenant are not in it and stay" in out
    fill(folder, NODE.format(price=30, day="2026-10-01"))
    assert "1 behind a newer or equal row" in refresh(folder, data_dir)[0]
    assert run("audit", "verify", data_dir=data_dir)[0].startswith("default: ")


def test_a_line_that_is_no_price_is_named_by_file_line_and_column(folder, data_dir):
    fill(folder, OTHER, WRONG, NODE.format(price=1, day="2999-01-01"))
    out, errors, status = refresh(folder, data_dir)
    assert status == 0
    assert "1 new" in out
    assert "2 refused" in out
    assert errors.splitlines() == [
        "gpu-offers.csv:3, price_per_hour: the price is not a number (PRICE_INVALID)",
        "gpu-offers.csv:4, as_of: the date of the price is still to come (DATE_IN_FUTURE)",
    ]


def test_another_table_of_the_folder_is_named(folder, data_dir):
    fill(folder, OTHER)
    fill(folder, "a,b", name="hardware-purchase.csv", header="x,y")
    assert "hardware-purchase.csv: not read" in refresh(folder, data_dir)[0]


def test_a_trial_stores_nothing(folder, data_dir):
    fill(folder, OTHER)
    out = refresh(folder, data_dir, "--dry-run")[0]
    assert "1 new" in out
    assert "nothing was stored" in out
    assert "1 new" in refresh(folder, data_dir)[0]


def test_a_file_that_is_none_leaves_the_other_out_too(folder, data_dir):
    fill(folder, OTHER)
    fill(folder, "a,b", name="token-prices.csv", header="x,y")
    out, errors, status = refresh(folder, data_dir)
    assert (out, status) == ("", 1)
    assert errors.startswith("ironlaw: token-prices.csv: the table has no column provider")
    (folder / "token-prices.csv").unlink()
    assert "1 new" in refresh(folder, data_dir)[0]


def test_a_folder_without_prices_is_refused(folder, data_dir):
    out, errors, status = refresh(folder, data_dir)
    assert (out, status, errors.count("\n")) == ("", 1, 1)
    assert "gpu-offers.csv" in errors


def test_prices_belong_to_a_tenant_that_exists(folder, data_dir):
    fill(folder, OTHER)
    out, errors, status = refresh(folder, data_dir, "--tenant", "nobody")
    assert (out, status) == ("", 1)
    assert "no tenant" in errors
