"""Bills in the columns of FOCUS."""

import csv
import io
import json

COLUMNS = (
    *("BilledCost", "EffectiveCost", "BillingCurrency", "BillingAccountId", "SubAccountId"),
    *("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"),
    *("ChargeCategory", "ServiceCategory", "Tags"),
)


def row(cost="10", start="2025-03-01", end="2025-04-01", *, tags=None, **members):
    """A charge of a month, unless other columns are named."""
    period = {"BillingPeriodStart": f"{start[:7]}-01", "BillingPeriodEnd": "2025-04-01"}
    made = {"BilledCost": cost, "EffectiveCost": cost, "BillingCurrency": "USD", "BillingAccountId": "1"}
    made |= period | {"ChargePeriodStart": start, "ChargePeriodEnd": end}
    made |= {"ChargeCategory": "Usage", "ServiceCategory": "Compute", "Tags": json.dumps(tags or {})}
    return made | members


def bill(*rows, columns=COLUMNS):
    """Rows as a table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def imported(client, content, source="cloud", status=201, **options):
    """What the service answers to a bill."""
    url = "/v1/actuals:import" + ("?validate_only=true" if options.pop("validate_only", False) else "")
    answer = client.post(url, {"source": source, "content": content}, **options)
    assert answer.status_code == status, answer.text
    return answer.json()
