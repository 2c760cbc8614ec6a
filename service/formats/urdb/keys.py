"""The keys of a rate: those whose meaning is settled, and what else the database writes."""

INFORMATION = (
    "label",
    "utility",
    "eiaid",
    "name",
    "sector",
    "servicetype",
    "description",
    "source",
    "uri",
    "voltagecategory",
    "phasewiring",
    "dgrules",
    "basicinformationcomments",
)
DATES = ("startdate", "enddate", "startdate_iso", "enddate_iso")
ELIGIBILITY = ("peakkwcapacitymin", "peakkwcapacitymax", "voltagemaximum")
CHARGES = (
    "energyratestructure",
    "energyweekdayschedule",
    "energyweekendschedule",
    "demandratestructure",
    "demandweekdayschedule",
    "demandweekendschedule",
    "demandrateunit",
    "flatdemandstructure",
    "flatdemandmonths",
    "flatdemandunit",
    "fixedchargefirstmeter",
    "fixedchargeunits",
    "fixedmonthlycharge",
    "mincharge",
    "minchargeunits",
    "lookbackpercent",
    "lookbackmonths",
    "lookbackrange",
    "demandratchetpercentage",
    "demandreactivepowercharge",
)
EXTENSIONS = (
    "x_fixed_nok_per_year",
    "x_fixed_sek_per_year",
    "x_annual_fees",
    "x_adj_is",
    "x_energy_tax_sek_per_kwh",
    "x_energy_price_ct_per_kwh",
    "x_annual_peak_demand_price",
    "x_condition",
    "x_min_demand_charge_usd_month",
    "x_min_billing_kw",
    "x_secondary_metering_loss_factor",
    "x_power_factor",
    "x_reactive",
    "x_extraflatdemandmonths",
    "x_demandattrs",
    "x_billing_demand",
    "x_tier_accumulation",
    "x_coincident_peak",
    "x_charges",
)
META = "_meta"
META_MEMBERS = (
    "currency",
    "kind",
    "extracted_from",
    "urdb_label",
    "urdb_representable",
    "approved_by_urdb",
    "note",
    "open",
    "semantics",
)

LISTED = frozenset({*INFORMATION, *DATES, *ELIGIBILITY, *CHARGES, *EXTENSIONS, META})
"""Keys whose meaning is written down for worked bills; there, any other is refused."""

RENAMED = {
    "demandunits": "demandrateunit",
    "demandrateunits": "demandrateunit",
    "flatdemandunits": "flatdemandunit",
    "lookbackPercent": "lookbackpercent",
    "lookbackMonths": "lookbackmonths",
    "lookbackRange": "lookbackrange",
    "minmonthlycharge": "mincharge",
}
"""Older or other spellings that the database writes."""

FURTHER_ELIGIBILITY = (
    "peakkwcapacityhistory",
    "peakkwhusagemin",
    "peakkwhusagemax",
    "peakkwhusagehistory",
    "voltageminimum",
)
FURTHER_INFORMATION = (
    "approved",
    "is_default",
    "country",
    "supersedes",
    "sourceparent",
    "sourcereference",
    "revisions",
    "usenetmetering",
    "energycomments",
    "demandcomments",
)
ATTRIBUTES = ("demandattrs", "energyattrs", "fixedattrs")
"""The utility's names of its charges, which have no billing rule."""

FURTHER_CHARGES = ("fixedchargeeaaddl", "annualmincharge", "demandwindow")

DATABASE = frozenset({*RENAMED, *FURTHER_ELIGIBILITY, *FURTHER_INFORMATION, *ATTRIBUTES, *FURTHER_CHARGES})
"""Further keys that the database writes."""
