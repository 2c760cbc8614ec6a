"""What approvals are, said as plainly as possible: names, numbers of seconds, and no database."""

from dataclasses import dataclass, field

MAKERS = {"api_key:k1": "token:alice", "api_key:k2": "token:bob", "api_key:k3": "token:alice"}
"""Who made the keys."""
FINAL = {"rejected", "cancelled", "expired", "superseded"}


class Refused(Exception):
    """The code of a problem."""


def human(name):
    return MAKERS.get(name, name).partition(":")[2]


@dataclass
class Step:
    approvers: list
    quorum: int
    expires: int | None
    escalates: int | None
    to: list
    state: str = "waiting"
    due: float = 0.0
    opened: float = 0.0
    escalated: bool = False
    decisions: list = field(default_factory=list)

    def counted(self):
        """Whose voice a decision in the step has used up."""
        return {human(name) for approver, decider, _ in self.decisions for name in (approver, decider)}


@dataclass
class ModelledApproval:
    id: str
    quote: str
    version: int
    digest: str
    askers: set
    steps: list
    valid_until: float
    last: float
    state: str = "pending"
    made: dict = field(default_factory=dict)

    @property
    def open(self):
        return next((step for step in self.steps if step.state == "open"), None)

    def barred(self, name):
        return human(name) in {human(asker) for asker in self.askers}


class Model:
    """Approvals of one tenant."""

    def __init__(self):
        self.now = 0.0
        self.asked = {}
        self.delegations = []
        self.revoked = set()

    def time(self, approval):
        """Of an approval: it never goes back, whatever the clock does."""
        return max(self.now, approval.last)

    def standing_for(self, approval, name):
        return {
            giver for giver, taker, start, end in self.delegations
            if taker == name and giver not in self.revoked and start <= self.time(approval) < end
            and not approval.barred(giver)
        }  # fmt: skip

    def begin(self, approval):
        """Open the first step."""
        for step in approval.steps:
            working = {*step.approvers, *step.to} - self.revoked
            if len({human(each) for each in working if not approval.barred(each)}) < step.quorum:
                raise Refused("TOO_FEW_APPROVERS")
        self.asked[approval.id] = approval
        self.follow(approval)

    def follow(self, approval):
        following = next((step for step in approval.steps if step.state == "waiting"), None)
        if following is None:
            approval.state = "approved"
            return
        following.state, following.opened = "open", self.time(approval)
        approval.last = following.opened
        ends = [approval.valid_until]
        if following.expires is not None:
            ends.append(following.opened + following.expires)
        following.due = min(ends)
        for decider, kind in approval.made.items():
            place = None if decider in self.revoked else self.place(approval, following, decider)
            if place:
                following.decisions.append((place, decider, kind))
        self.close(approval)

    def close(self, approval):
        step = approval.open
        if step and len(step.decisions) >= step.quorum:
            step.state = "approved"
            self.follow(approval)

    def place(self, approval, step, decider):
        taken = {approver for approver, _, _ in step.decisions}
        entitled = [decider] if decider in step.approvers else []
        entitled += [name for name in step.approvers if name in self.standing_for(approval, decider)]
        able = (
            each for each in entitled
            if each not in taken and step.counted().isdisjoint({human(each), human(decider)})
        )  # fmt: skip
        return next(able, None)

    def escalate(self, approval, step):
        time = self.time(approval)
        if step.escalates is not None and not step.escalated and step.opened + step.escalates <= time:
            step.escalated, approval.last = True, time
            step.approvers.extend(name for name in step.to if name not in step.approvers)

    def decide(self, approval, decider, kind, digest):
        """What becomes of a decision: nothing where it was made before."""
        if digest != approval.digest:
            raise Refused("CONTENT_CHANGED")
        before = approval.made.get(decider)
        if before not in (None, kind):
            raise Refused("DECIDED_OTHERWISE")
        try:
            if before is None or approval.state == "pending":
                self.count(approval, decider, kind)
        except Refused as refused:
            known = {"APPROVAL_EXPIRED", "NOT_AN_APPROVER", "ALREADY_DECIDED"}
            if before is None or str(refused) not in known:
                raise

    def count(self, approval, decider, kind):
        step = approval.open
        if step is None:
            raise Refused("APPROVAL_ENDED")
        if self.time(approval) >= step.due:
            raise Refused("APPROVAL_EXPIRED")
        if approval.barred(decider):
            raise Refused("OWN_APPROVAL")
        if any(decider == each for _, each, _ in step.decisions):
            return
        was = step.escalated, list(step.approvers), approval.last
        self.escalate(approval, step)
        place = self.place(approval, step, decider)
        if place is None:
            entitled = {decider, *self.standing_for(approval, decider)} & {*step.approvers}
            if decider not in approval.made:
                step.escalated, step.approvers, approval.last = was
            raise Refused("ALREADY_DECIDED" if entitled else "NOT_AN_APPROVER")
        approval.last = self.time(approval)
        approval.made.setdefault(decider, kind)
        step.decisions.append((place, decider, kind))
        if kind == "reject":
            self.end(approval, "rejected")
        else:
            self.close(approval)

    def end(self, approval, state):
        for step in approval.steps:
            if step.state in ("open", "waiting"):
                is_rejected = state == "rejected" and step.state == "open"
                step.state = "rejected" if is_rejected else "ended"
        approval.state = state

    def settle(self):
        """What the service does by itself once deadlines have passed."""
        for approval in self.asked.values():
            step = approval.open
            if step and approval.state == "pending":
                if step.due <= self.time(approval):
                    self.end(approval, "expired")
                else:
                    self.escalate(approval, step)
