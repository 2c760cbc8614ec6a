"""People who may not decide an approval."""

from service.approvals.tables import ApprovalRow
from service.kit.security.identity import list_people
from service.policies.people import Person


def is_barred(row: ApprovalRow, one: Person) -> bool:
    """Returns true if somebody is, or acts for, a requester of any version."""
    return (
        not one.lineage.isdisjoint(row.asked_by)
        or not one.somebody.isdisjoint(row.barred)
        or not one.people.isdisjoint(list_people(row.barred))
    )
