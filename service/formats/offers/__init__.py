"""Price lists of other publishers: text in, offers and refused rows out.

Every format is read as its publisher describes it. A row that cannot be an offer, or that the rest of its
list contradicts, is refused with its place and the reason; a price is never guessed and never 0.
"""

from collections.abc import Callable, Mapping
from typing import Final

from service.formats.offers.dated_csv import offers_from_dated_csv
from service.formats.offers.gpuhunt import offers_from_gpuhunt, offers_from_gpuhunt_tpu
from service.formats.offers.listed import ReadOffers
from service.formats.offers.names import PriceListContext
from service.formats.offers.opencost import offers_from_opencost_csv, offers_from_opencost_json
from service.formats.offers.skypilot import offers_from_skypilot
from service.formats.offers.vantage import offers_from_ec2instances

READERS: Final[Mapping[str, Callable[[str, PriceListContext], ReadOffers]]] = {
    "dated_csv": offers_from_dated_csv,
    "skypilot": offers_from_skypilot,
    "gpuhunt": offers_from_gpuhunt,
    "gpuhunt_tpu": offers_from_gpuhunt_tpu,
    "ec2instances": offers_from_ec2instances,
    "opencost_csv": offers_from_opencost_csv,
    "opencost_json": offers_from_opencost_json,
}
"""The reader of each format: content as text and what the format does not say."""
PROVIDERS: Final[Mapping[str, str]] = {"gpuhunt_tpu": "gcp", "ec2instances": "aws"}
"""Provider of the prices of a format, unless the caller names one."""
SELF_CONTAINED: Final = frozenset({"dated_csv"})
"""Formats whose rows name their provider, their date and their source."""
