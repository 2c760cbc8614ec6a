"""Order of deliveries: tenants take turns, and so do the webhooks of each tenant, within limits.

The tenant or webhook with the fewest messages under way goes first, and among equals the one that has waited
longest for a turn. So neither a receiver that never answers nor a tenant with ten thousand deliveries holds
up another.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

MOST_AT_ONCE: Final = 64
"""Messages that one process sends at a time."""
MOST_TO_A_WEBHOOK: Final = 4
"""Messages that one webhook is sent at a time. Several processes together sometimes exceed it by a few."""

TurnKey = tuple[str, ...]


class ReadyWebhook(NamedTuple):
    """A webhook with a delivery that is due."""

    tenant_id: str
    webhook_id: str
    under_way: int = 0
    """Messages that all processes are sending to it now."""

    @property
    def tenant(self) -> TurnKey:
        """Key of its tenant in the order of turns."""
        return (self.tenant_id,)

    @property
    def webhook(self) -> TurnKey:
        """Key of the webhook in the order of turns."""
        return (self.tenant_id, self.webhook_id)


class FairScheduler:
    """Messages that a process has under way, and the last turn of each tenant and webhook. For one thread."""

    def __init__(self) -> None:
        self._under_way: Counter[TurnKey] = Counter()
        self._last: dict[TurnKey, int] = {}
        self._turn = 0
        self.room = MOST_AT_ONCE
        """Messages that may still be sent."""

    def begin_sends(self, ready: Sequence[ReadyWebhook], most: int) -> list[ReadyWebhook]:
        """Returns the webhooks to send the next messages to. Each has to be handed to ``end_send``."""
        known = {key for each in ready for key in (each.tenant, each.webhook)}
        self._last = {key: turn for key, turn in self._last.items() if key in known}
        before = {each.webhook: self._under_way[each.webhook] for each in ready}
        begun: list[ReadyWebhook] = []
        while len(begun) < most and (found := self._select_next(ready, before)) is not None:
            begun.append(found)
            self.room -= 1
            self._turn += 1
            for key in (found.tenant, found.webhook):
                self._under_way[key] += 1
                self._last[key] = self._turn
        return begun

    def _select_next(self, ready: Sequence[ReadyWebhook], before: dict[TurnKey, int]) -> ReadyWebhook | None:
        free: dict[TurnKey, list[ReadyWebhook]] = defaultdict(list)
        for each in ready:
            here = self._under_way[each.webhook]
            anywhere = each.under_way + here - before[each.webhook]
            # No tenant has more under way than there is room left, so that another tenant finds room.
            if self._under_way[each.tenant] < self.room and max(here, anywhere) < MOST_TO_A_WEBHOOK:
                free[each.tenant].append(each)
        if not free:
            return None
        return min(free[min(free, key=self._rank_key)], key=lambda each: self._rank_key(each.webhook))

    def _rank_key(self, key: TurnKey) -> tuple[int, int]:
        return self._under_way[key], self._last.get(key, 0)

    def end_send(self, each: ReadyWebhook) -> None:
        """Ends a turn, with any result."""
        self.room += 1
        self._under_way -= Counter((each.tenant, each.webhook))  # subtraction drops keys at zero
