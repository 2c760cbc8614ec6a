"""Price lists that others publish: text in, offers and refused rows out.

Every format is read as its publisher describes it. A row that cannot be an offer, or that the rest of its
list contradicts, is refused with its place and the reason; a price is never guessed and never 0.
"""

from service.planning.formats.offers.gpuhunt import offers_from_gpuhunt, offers_from_gpuhunt_tpu
from service.planning.formats.offers.listed import ListedOffer, OfferImport, Refused
from service.planning.formats.offers.names import Accelerators, named
from service.planning.formats.offers.opencost import offers_from_opencost_csv, offers_from_opencost_json
from service.planning.formats.offers.skypilot import offers_from_skypilot
from service.planning.formats.offers.vantage import offers_from_ec2instances

__all__ = [
    "Accelerators",
    "ListedOffer",
    "OfferImport",
    "Refused",
    "named",
    "offers_from_ec2instances",
    "offers_from_gpuhunt",
    "offers_from_gpuhunt_tpu",
    "offers_from_opencost_csv",
    "offers_from_opencost_json",
    "offers_from_skypilot",
]
