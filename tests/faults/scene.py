"""Callers who quote, vote, spend and measure at once on processes that are killed, paused and cut off."""

import contextlib
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from uuid import uuid4

import httpx

from service.kit.security.credentials import parse_id
from tests import forked
from tests.applications import bearing
from tests.approvals.deciding import QUOTED
from tests.faults import node_service
from tests.faults.histories import UNKNOWN, History, Lease, Purse, Versions, Vote
from tests.faults.served import PATIENCE_SECONDS, free_port, is_in_use
from tests.nodes.hosts import BOOT, INVENTORY, INVENTORY_SHA256
from tests.serving import run
from tests.waiting import until

ANSWERED_SECONDS = 2.0
"""After so long a caller does not wait for an answer any more."""
LATE_SECONDS = 2 * node_service.LEASE_SECONDS
"""A node that waits up to so long may find its lease lapsed."""
QUORUM, PEOPLE, NODES, QUOTES, MOST_PAID = 2, 3, 3, 5, 2


class Place:
    """A served process at an address of its own, whose leases of runs last two seconds."""

    def __init__(self, folder, variables, mutation):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self._options = {
            "log": str(folder / "service.log"),
            "hits": str(folder / "hits.jsonl"),
            "mutation": mutation,
            "environment": {**variables, "IRONLAW_DATA_DIR": str(folder), "IRONLAW_PORT": str(port)},
            "armed": {},
        }
        self._client = httpx.Client(base_url=self.address, trust_env=False, timeout=1)
        self.start()

    def start(self):
        self.process = forked.Process(node_service.run, self._options)
        self._is_paused = False

    def kill(self):
        self.process.kill()
        self.process.join()

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def until_ready(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_ready():
            assert self.process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _is_ready(self):
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/readyz").status_code == httpx.codes.OK
        return False

    def end(self):
        self.kill()
        self._client.close()


class Caller:
    """Somebody with a credential, who asks any of the processes."""

    def __init__(self, places, credential, seed):
        self._addresses = [place.address for place in places]
        self._headers = bearing(credential)
        self.chance = random.Random(seed)  # noqa: S311
        self._client = httpx.Client(trust_env=False, timeout=ANSWERED_SECONDS)
        self.close = self._client.close

    def ask(self, method, path, body=None, *, insists=None):
        """The answer, or None. A caller who insists sends the same again until there is one."""
        insists = self.chance.random() < 0.5 if insists is None else insists
        headers = {**self._headers, "Idempotency-Key": uuid4().hex}
        if method == "PATCH":
            headers["If-Match"] = "*"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                url = self.chance.choice(self._addresses) + path
                answer = self._client.request(method, url, json=body, headers=headers)
                if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR and not is_in_use(answer):
                    return answer
            if not insists:
                return None
            time.sleep(self.chance.uniform(0.02, 0.2))
        raise AssertionError(f"in vain: {method} {path}")

    def settle(self, method, path, body=None):
        """The body of an answer that says yes."""
        answer = self.ask(method, path, body, insists=True)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.content else None


def read_answer(answer, read):
    """What an answer says: what ``read`` finds in it, the code of a refusal, or that there is none."""
    if answer is None:
        return UNKNOWN
    return read(answer) if answer.is_success else answer.json()["code"]


class Scene:
    """Processes that serve one database, and everybody who asks them."""

    def __init__(self, folder, url, processes, seed, mutation=""):
        variables = {
            "IRONLAW_MODE": "tenant",
            "IRONLAW_REQUESTS_PER_MINUTE": "0",
            "IRONLAW_DATABASE_URL": url,
        }
        keys = [
            run("keys", "create", "--admin", data_dir=folder, **variables).out.strip()
            for _ in range(2 + PEOPLE)
        ]
        self.chance = random.Random(seed)  # noqa: S311
        self.places = [Place(folder, variables, mutation) for _ in range(processes)]
        self._seed, self._callers = seed, []
        self._author, self._asker, *people = (self._caller(key) for key in keys)
        self._people = dict(zip((f"api_key:{parse_id(key)}" for key in keys[2:]), people, strict=True))

    def begin(self):
        """Wait for the processes; nodes enrol, and policies hold at once."""
        for place in self.places:
            place.until_ready()
        self._nodes = [self._enrol() for _ in range(NODES)]
        self._author.settle("PATCH", "/v1/approval-settings", {"change_delay_seconds": 0})

    def _caller(self, credential):
        self._callers.append(Caller(self.places, credential, self._seed + len(self._callers)))
        return self._callers[-1]

    def _enrol(self):
        token = self._author.settle("POST", "/v1/enrolment-tokens", {})["token"]
        about = {"device": "cpu", "worker_version": "1.0", "name": "node", "installation_id": uuid4().hex}
        node = self._author.settle("POST", "/v1/nodes:enrol", {"token": token, **about})
        caller, path = self._caller(node["credential"]), f"/v1/nodes/{node['node_id']}"
        caller.settle("PUT", f"{path}/inventory", INVENTORY.model_dump(mode="json"))
        beat = {"boot_id_sha256": BOOT, "worker_version": "1.0", "inventory_sha256": INVENTORY_SHA256}
        beat |= {"activity": "idle", "spool": {"waiting_count": 0, "waiting_bytes": 0}}
        caller.settle("POST", f"{path}:heartbeat", beat)
        return node["node_id"], caller

    def _govern(self, center, quorum):
        """A cost centre whose quotes so many people must approve."""
        self._author.settle("POST", "/v1/cost-centers", {"id": center, "name": center})
        step = {"name": "step", "approvers": list(self._people), "quorum": quorum}
        policy = {"id": center, "name": center, "conditions": {"cost_center_ids": [center]}, "steps": [step]}
        self._author.settle("POST", "/v1/approval-policies", policy)

    def _quote(self, **members):
        return self._asker.settle("POST", "/v1/quotes", {**QUOTED, **members})

    def _submit(self, quote):
        body = {"content_digest": quote["content_digest"]}
        return self._asker.settle("POST", f"/v1/quotes/{quote['id']}:submit", body)

    def vote(self):
        """Three people vote at once on one approval that needs two of them."""
        center, history = f"votes-{uuid4().hex[:8]}", History()
        self._govern(center, QUORUM)
        approval = self._submit(self._quote(cost_center_id=center))
        path, body = f"/v1/approvals/{approval['id']}", {"content_digest": approval["content_digest"]}

        def read(caller, **how):
            history.record(("read",), lambda: read_answer(caller.ask("GET", path, **how), _to_vote))

        def take_part(name, caller):
            for _ in range(4):
                pause(caller)
                read(caller)
                verb = caller.chance.choice(["approve", "approve", "approve", "reject"])
                asking = partial(caller.ask, "POST", f"{path}:{verb}", body)
                history.record((verb, name), lambda asking=asking: read_answer(asking(), _to_state))

        at_once(take_part, self._people.items())
        read(self._asker, insists=True)
        return history.calls, Vote(QUORUM)

    def spend(self):
        """Approvals of five quotes at once, of which a budget pays two; some are cancelled meanwhile."""
        center, history = f"purse-{uuid4().hex[:8]}", History()
        self._govern(center, 1)
        quotes = [self._quote(cost_center_id=center) for _ in range(QUOTES)]
        total = Decimal(quotes[0]["headlines"]["total"]["amount"])
        self._author.settle("POST", "/v1/budgets", _budget(center, total * (MOST_PAID * 2 + 1) / 2))
        approvals = [self._submit(quote) for quote in quotes]

        def read(caller, **how):
            count = lambda answer: int(Decimal(answer.json()["committed"]["amount"]) / total)  # noqa: E731
            history.record(
                ("read",), lambda: read_answer(caller.ask("GET", f"/v1/budgets/{center}", **how), count)
            )

        def take_part(place, caller):
            for _ in range(5):
                pause(caller)
                # Each approval is decided by one person, who may ask for it again.
                number = caller.chance.choice(range(place, QUOTES, PEOPLE))
                verb = caller.chance.choice(["approve", "approve", "cancel"])
                owner = (
                    f"quotes/{quotes[number]['id']}"
                    if verb == "cancel"
                    else f"approvals/{approvals[number]['id']}"
                )
                body = {"content_digest": quotes[number]["content_digest"]}
                asking = partial(caller.ask, "POST", f"/v1/{owner}:{verb}", body)
                history.record((verb, number), lambda asking=asking: read_answer(asking(), _to_state))
                read(caller)

        at_once(take_part, enumerate(self._people.values()))
        read(self._asker, insists=True)
        return history.calls, Purse(MOST_PAID)

    def reprice(self):
        """Three people price a quote again, each the version that they know."""
        history = History()
        path = f"/v1/quotes/{self._quote()['id']}"

        def read(caller, **how):
            return history.record(("read",), lambda: read_answer(caller.ask("GET", path, **how), _to_version))

        def take_part(caller):
            known = 1
            for _ in range(5):
                pause(caller)
                asking = partial(caller.ask, "POST", f"{path}:reprice", {"version": known})
                history.record(("reprice", known), lambda asking=asking: read_answer(asking(), _to_version))
                seen = read(caller)
                known = known if seen == UNKNOWN else seen

        at_once(take_part, [(caller,) for caller in self._people.values()])
        read(self._asker, insists=True)
        return history.calls, Versions()

    def lease(self):
        """Three nodes want one run; one of them is late now and then, and asks all the same."""
        history = History()
        made = self._author.settle("POST", "/v1/benchmark-runs", {"suite_id": node_service.SUITE.id})
        path = f"/v1/benchmark-runs/{made['id']}"

        def read(caller, **how):
            history.record(("read",), lambda: read_answer(caller.ask("GET", path, **how), _to_end))

        def take_part(name, caller):
            tokens = []
            for _ in range(7):
                pause(caller, LATE_SECONDS if caller.chance.random() < 0.25 else 0.4)
                if not tokens or caller.chance.random() < 0.3:
                    token = history.record(("claim", name), lambda: _claim(caller, made["id"]))
                    tokens += [token] if token not in (0, UNKNOWN, *tokens) else []
                    continue
                # Some requests of an attempt before come late.
                token = caller.chance.choice(tokens[-2:])
                verb = caller.chance.choice(["renew", "renew", "renew", "released", "completed"])
                asking = partial(_hold, caller, made["id"], verb, token)
                history.record((verb, name, token), asking)

        at_once(take_part, self._nodes)
        read(self._author, insists=True)
        self._author.ask("POST", f"{path}:cancel", insists=True)
        return history.calls, Lease()

    def lapsed_lease(self):
        """A node's lease lapses, it gets the run again, and a request of the attempt before comes late."""
        history = History()
        run_id = self._author.settle("POST", "/v1/benchmark-runs", {"suite_id": node_service.SUITE.id})["id"]
        (name, node), *_ = self._nodes
        claim = partial(until, partial(_claim, node, run_id), every=0.1)
        token, _ = (history.record(("claim", name), claim) for _ in range(2))
        history.record(("renew", name, token), lambda: _hold(node, run_id, "renew", token))
        return history.calls, Lease()

    def end(self):
        for place in self.places:
            place.end()
        for caller in self._callers:
            caller.close()


KINDS = ("vote", "spend", "reprice", "lease")


def at_once(function, arguments):
    """Call a function with each of some arguments, all at the same time."""
    arguments = list(arguments)
    with ThreadPoolExecutor(len(arguments)) as pool:
        for work in [pool.submit(function, *each) for each in arguments]:
            work.result()


def pause(caller, most=0.4):
    time.sleep(caller.chance.uniform(0, most))


def _claim(caller, run_id):
    asked = {"request_id": uuid4().hex, "wait_seconds": 0.0, "inventory_sha256": INVENTORY_SHA256}
    answer = caller.ask("POST", "/v1/leases:claim", asked)
    if answer is None:
        return UNKNOWN
    lease = answer.json() if answer.status_code == httpx.codes.OK else None
    return lease["fencing_token"] if lease and lease["id"] == run_id else 0


def _hold(caller, run_id, verb, token):
    body = {"fencing_token": token}
    if verb == "renew":
        answer = caller.ask("POST", f"/v1/leases/{run_id}:renew", body)
    else:
        answer = caller.ask("POST", f"/v1/leases/{run_id}:complete", {**body, "outcome": verb})
    return read_answer(answer, lambda _: "ok")


def _to_vote(answer):
    body = answer.json()
    made = [one for step in body["steps"] for one in step.get("decisions", ())]
    return body["state"], frozenset((one["decided_by"], one["decision"]) for one in made)


def _to_state(answer):
    return answer.json()["state"]


def _to_version(answer):
    return answer.json()["version"]


def _to_end(answer):
    return answer.json()["state"] == "completed"


def _budget(center, amount):
    year = time.gmtime().tm_year
    return {
        "id": center,
        "name": center,
        "cost_center_id": center,
        "enforcement": "block",
        "starts_on": f"{year}-01-01",
        "ends_on": f"{year + 1}-12-31",
        "amount": {"amount": str(amount), "currency_code": "USD"},
    }


class Troubles:
    """Kills and pauses of processes, and partitions of their database, one after the other."""

    def __init__(self, scene, relay=None):
        self._scene, self._relay = scene, relay
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.done = Counter()
        self._failure = None

    def _work(self):
        try:
            while not self._stop.wait(self._scene.chance.uniform(0.2, 1.0)):
                self._do(
                    self._scene.chance.choice(
                        ["kills", "pauses", *(["partitions", "cuts"] if self._relay else [])]
                    )
                )
        except Exception as failure:  # noqa: BLE001  # raised again where the troubles end
            self._failure = failure

    def _do(self, trouble):
        chance = self._scene.chance
        place = chance.choice(self._scene.places)
        match trouble:
            case "kills":
                place.kill()
                place.start()
                place.until_ready()
            case "pauses":
                place.pause(chance.uniform(0.3, 3.5))
            case "partitions":
                self._relay.part(chance.uniform(0.3, 3.5))
            case "cuts":
                self._relay.cut(chance.uniform(0.0, 2.0))
        self.done[trouble] += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
