"""The electricity bill of a load under a tariff."""
