"""A bounded queue in which tenants take turns."""

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MOST_IN_ORDER: Final = 16
"""Length up to which a tenant's queue serves the first that came.

A longer one serves the last: its first have waited so long that hardly anybody waits for their answers, and
all would be answered late.
"""
T = TypeVar("T")


class QueueFullError(Exception):
    """As many items wait as may."""


class FairQueue(Generic[T]):
    """Items that wait, by tenant. The tenant with the most gives way to the others."""

    def __init__(self, most: int, most_of_a_tenant: int) -> None:
        self._most, self._most_of_a_tenant = most, most_of_a_tenant
        self._length = 0
        self._waiting: dict[str, deque[T]] = {}
        """Items of each tenant; the tenant whose turn is next comes first."""

    def __len__(self) -> int:
        """Returns the number of items that wait."""
        return self._length

    def add(self, tenant_id: str, item: T, *, running: int = 0) -> T | None:
        """Adds an item, or raises :class:`QueueFullError`.

        ``running`` items of the tenant count beside those that wait. If all places are taken, the last item
        of the longest queue is removed and returned.
        """
        mine = len(self._waiting.get(tenant_id, ()))
        if mine + running >= self._most_of_a_tenant:
            raise QueueFullError
        displaced = self._displace_item(mine) if self._length >= self._most else None
        self._waiting.setdefault(tenant_id, deque()).append(item)
        self._length += 1
        return displaced

    def _displace_item(self, mine: int) -> T:
        """Removes the last item of the longest queue, which must stay the longer one."""
        longest = max(self._waiting.values(), key=len)
        if len(longest) <= mine + 1:
            raise QueueFullError
        self._length -= 1
        return longest.pop()

    def take_next(self, may_begin: Callable[[str], bool] = lambda _: True) -> T | None:
        """Removes and returns an item of the next tenant that may begin one."""
        tenant_id = next(filter(may_begin, self._waiting), None)
        if tenant_id is None:
            return None
        queue = self._waiting.pop(tenant_id)
        item = queue.popleft() if len(queue) <= MOST_IN_ORDER else queue.pop()
        if queue:
            self._waiting[tenant_id] = queue  # behind the others
        self._length -= 1
        return item

    def discard(self, tenant_id: str, item: T) -> None:
        """Removes an item if it still waits."""
        queue = self._waiting.get(tenant_id, deque())
        if item in queue:
            queue.remove(item)
            self._length -= 1
            if not queue:
                del self._waiting[tenant_id]

    def clear(self) -> list[T]:
        """Removes and returns all items."""
        items = [item for queue in self._waiting.values() for item in queue]
        self._waiting.clear()
        self._length = 0
        return items
