"""A storm over a field: every named point is hit so many times, while the network fails and runs go on."""

import queue
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.faults import node_service, node_worker
from tests.faults.field import PATIENCE_SECONDS, Host, expect

MOST_OPEN_RUNS = 4
JOINING_SECONDS = 15.0
SLOW_SECONDS = 0.6
"""A repeat that outlasts a renewal."""
ROTATIONS = (*node_worker.ROTATING, "full disk: credential")
KILLED_SHARE = 0.3
"""Of the turns in which a worker is killed too, while the service is."""
LAPSED_SECONDS = node_service.LEASE_SECONDS + node_service.GRACE_SECONDS + 0.5


class Storm:
    """Hits points of workers on all hosts at once, then points of the service, one after the other."""

    def __init__(self, field, folder):
        self._field = field
        self._folder = folder
        self._chance = random.Random(field.seed)  # noqa: S311
        self._stop = threading.Event()
        self._failure = None
        self.runs = 0

    def run(self, worker_points, service_points):
        """Everything, while runs are asked for."""
        asking = threading.Thread(target=self._ask_runs, daemon=True)
        asking.start()
        try:
            self._hit_workers(worker_points)
            self._hit_service(service_points)
        finally:
            self._stop.set()
            asking.join(90)
        if self._failure is not None:
            raise self._failure
        self._field.settle()

    def hits(self):
        """How often each point was hit."""
        found = self._field.service.hits()
        for host in self._field.hosts:
            found += host.hits()
        return found

    def troubles(self):
        """How often each trouble of the network happened to each operation."""
        return sum((host.proxy.done for host in self._field.hosts), Counter())

    def _ask_runs(self):
        try:
            while not self._stop.wait(0.1):
                if not self._field.is_resting.is_set() and self._field.open_runs() < MOST_OPEN_RUNS:
                    self._field.ask_run()
                    self.runs += 1
        except Exception as failure:  # noqa: BLE001  # raised again where the storm ends
            self._failure = failure

    def _hit_workers(self, points):
        joining = [point for point in points if point in node_worker.JOINING]
        others = [point for point in points if point not in joining]
        self._chance.shuffle(joining)
        self._chance.shuffle(others)
        left = queue.SimpleQueue()
        for point in others:
            left.put(point)
        hosts = self._field.hosts
        with ThreadPoolExecutor(len(hosts)) as pool:
            keeping = [
                pool.submit(self._keep, host, joining[n :: len(hosts)], left) for n, host in enumerate(hosts)
            ]
            for one in keeping:
                one.result()

    def _keep(self, host, joining, left):
        for point in joining:
            self._join(host, point)
        host.until_enrolled()
        while True:
            try:
                point = left.get_nowait()
            except queue.Empty:
                host.start()
                return
            self._hit(host, point)

    def _join(self, host, point):
        """Have a point hit on a host that is new, and leaves again."""
        if point == "inventory: sent":
            host.until_enrolled()
            self._hit(host, point)
            host.leave()
            return
        before = host.hits()[point]
        while host.hits()[point] == before:  # an answer may be lost before it comes to that
            if host.enrol(point=point):
                host.leave()
        host.lose_power()
        host.until_enrolled()
        host.leave()

    def _hit(self, host, point):
        """Have a point hit on a host, and its power go."""
        before = host.hits()[point]
        action = node_worker.OTHERS.get(point, "none" if point in node_worker.FULL else "kill")
        self._start(host, point, action)
        self._until_hit(host, point, before, action)
        if action == "kill":
            host.until_dead(f"{host.name} is killed")
        elif action == "freeze":
            time.sleep(LAPSED_SECONDS)
            host.resume()
        if action != "kill":
            time.sleep(self._chance.uniform(0.0, 0.5))
            host.kill()
        host.lose_power()

    def _start(self, host, point, action):
        """Start a worker that comes to the point; one that is to release a lease finds itself with one."""
        if point in node_worker.RELEASING:
            host.start(point="child: started")
            host.until_dead("a worker is killed that holds a lease")
            host.lose_power()
        seconds = SLOW_SECONDS if point in node_worker.RENEWING else 0.01
        host.start(point=point, action=action, child_seconds=seconds)

    def _until_hit(self, host, point, before, action):
        deadline = time.monotonic() + PATIENCE_SECONDS
        lapsed = time.monotonic() + 3 * LAPSED_SECONDS
        while host.hits()[point] == before and host.process.is_alive():
            expect(time.monotonic() < deadline, f"{host.name} comes to {point}")
            if point in node_worker.RELEASING and time.monotonic() > lapsed:
                # On a busy machine the lease is gone before the worker is back: it has none to release.
                host.kill()
                host.lose_power()
                self._start(host, point, action)
                lapsed = time.monotonic() + 3 * LAPSED_SECONDS
            if point in ROTATIONS:
                self._rotate(host)
            host.process.join(1.0 if point in ROTATIONS else 0.02)
        expect(host.hits()[point] > before, f"{host.name} comes to {point}, not to {host.process.exitcode}")

    def _hit_service(self, points):
        """Have the service killed at each point; workers go on meanwhile, and are killed now and then."""
        service = self._field.service
        number = len(self._field.hosts)
        helper = Host(number, service, self._folder, self._field.seed + number, spool_bytes=0)
        left = list(points)
        self._chance.shuffle(left)
        with ThreadPoolExecutor(1) as pool:
            while left:
                service.kill()
                service.start(point=left[0])
                ended = threading.Event()
                bringing = pool.submit(self._bring_about, left[0], helper, ended)
                service.process.join(PATIENCE_SECONDS)
                ended.set()
                if service.process.exitcode != -signal.SIGKILL:
                    bringing.result(PATIENCE_SECONDS)  # what went wrong there says more
                    break
                del left[0]
            service.kill()
            service.start()
        service.until_ready()
        helper.end()
        expect(not left, f"the service is killed at {left[:1]}")

    def _bring_about(self, point, helper, ended):
        """Do what leads to a point of the service, until it is killed there."""
        do = {
            "enrol": self._enrol,
            "inventory": self._enrol,
            "news": self._enrol,
            "rotate": self._rotate_any,
            "confirm": self._rotate_any,
            "lose": self._lose,
            "withdraw": lambda _: self._field.withdraw(),
            "import": lambda _: self._field.import_evidence(),
        }.get(point.partition(":")[0], self._go_on)
        # A host that has just joined lists its devices in a process of its own first.
        seconds = JOINING_SECONDS if do == self._enrol else 1.0
        while not ended.is_set():
            do(helper)
            ended.wait(seconds)

    def _enrol(self, helper):
        """A host joins and says what it is; it has no room, so it measures nothing."""
        if helper.node_id:
            helper.kill()
            helper.leave()
        helper.until_enrolled()
        helper.start()

    def _rotate_any(self, _):
        self._rotate(self._chance.choice(self._field.hosts))

    def _rotate(self, host):
        self._field.service.ask("POST", f"/v1/nodes/{host.node_id}:request-rotation")

    def _lose(self, _):
        host = self._chance.choice(self._field.hosts)
        host.kill()
        host.start(point="child: started")
        host.until_dead(f"{host.name} is killed while it holds a lease")
        time.sleep(LAPSED_SECONDS)
        host.start()

    def _go_on(self, _):
        host = self._chance.choice(self._field.hosts)
        if self._chance.random() < KILLED_SHARE or not host.process.is_alive():
            host.kill()
            host.lose_power()
            host.start()
