"""The chart, rendered by Helm and held against the schemas of Kubernetes and what the service reads."""

import copy
import json
import re

import jsonschema_rs
import pytest
import yaml

from service import __version__
from service.app.settings import Settings
from tests.composing import SERVICES
from tests.helming import CHART, IS_THERE, Refused, helm, rendered, validator_of
from tests.test_deploy import POD as NODE_POD
from tests.test_deploy import options_of

pytestmark = pytest.mark.skipif(not IS_THERE, reason="Helm renders the chart: make chart")
KUBERNETES = ("1.35.0", "1.36.0", "1.37.0")
LEAST = {"database": {"host": "db.example.com", "password": "of rows", "ownerPassword": "of the owner"}}
MOST = {
    "image": {"repository": "registry.example.com/ironlaw", "digest": f"sha256:{'d' * 64}"},
    "imagePullSecrets": ["registry"],
    "settings": {
        "IRONLAW_OIDC_ISSUER": "https://login.example.com",
        "IRONLAW_OIDC_AUDIENCE": "ironlaw",
        "IRONLAW_OIDC_CLIENT_ID": "ironlaw",
        "IRONLAW_REQUESTS_PER_MINUTE": 600000,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.observability:4318",
    },
    "database": {
        "host": "db.example.com",
        "existingSecret": "database",
        "authority": {"secret": "authority"},
    },
    "secretKey": {"existingSecret": "secret-key"},
    "oidcClientSecret": {"existingSecret": "oidc"},
    "api": {"tolerations": [{"key": "spot", "operator": "Exists"}], "podAnnotations": {"team": "research"}},
    "audit": {"headsClaim": "audit-heads"},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "plan.example.com",
        "tlsSecret": "plan-tls",
        "annotations": {"cert-manager.io/cluster-issuer": "letsencrypt"},
    },
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}],
        "databaseTo": [{"ipBlock": {"cidr": "10.1.2.3/32"}}],
        "extraEgress": [{"ports": [{"port": 4318, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "keySecret": "metrics-key", "labels": {"release": "prometheus"}},
    "node": {
        "enabled": True,
        "serviceUrl": "https://plan.example.com",
        "enrolment": {"existingSecret": "ironlaw-enrolment"},
    },
}
ALONE = LEAST | {
    "worker": {"enabled": False},
    "api": {"autoscaling": {"enabled": False}, "podDisruptionBudget": {"enabled": False}},
    "networkPolicy": {"enabled": False},
}
SETS = {"least": LEAST, "most": MOST, "alone": ALONE}
OF_OTHERS = {"ServiceMonitor"}
"""Kinds that the operator of Prometheus defines, and Kubernetes has no schema of."""


@pytest.fixture(scope="module")
def least():
    return rendered(LEAST)


@pytest.fixture(scope="module")
def most():
    return rendered(MOST)


def pods(resources):
    """Each pod, by the name of what makes it."""
    return {
        name: each["spec"]["template"]["spec"]
        for (_, name), each in resources.items()
        if "template" in each.get("spec", {})
    }


def containers(resources):
    """Every container of ours, with its pod."""
    for pod in pods(resources).values():
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            yield pod, container


def environment(container):
    return {each["name"]: each.get("value") for each in container.get("env", [])}


def changed(values, path, value):
    """Values of which one is another."""
    made = copy.deepcopy(values)
    *above, last = path.split(".")
    place = made
    for name in above:
        place = place.setdefault(name, {})
    place[last] = value
    return made


class TestHelm:
    @pytest.mark.parametrize("version", ["v3", "v4"])
    @pytest.mark.parametrize(
        ("folder", "values"), [(CHART, LEAST), (CHART, MOST), (CHART / "charts" / "node", MOST["node"])]
    )
    def test_it_lints_without_a_warning(self, version, folder, values):
        said = json.loads(helm("lint", version, paths=[str(folder)], values=values, strict=True))
        assert said["passed"], said
        assert {message["severity"] for message in said["messages"]} == {"INFO"}

    def test_both_generations_render_the_same(self, most):
        assert rendered(MOST, "v3") == most

    @pytest.mark.parametrize("values", SETS.values(), ids=SETS)
    @pytest.mark.parametrize("kubernetes", KUBERNETES)
    def test_every_resource_fits_the_published_schema(self, values, kubernetes):
        for resource in rendered(values, kubernetes=kubernetes).values():
            if resource["kind"] not in OF_OTHERS:
                validator_of(kubernetes, resource["apiVersion"], resource["kind"]).validate(resource)

    def test_the_schema_knows_what_is_misspelt(self, least):
        resource = copy.deepcopy(least["Deployment", "plan-api"])
        resource["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
        with pytest.raises(jsonschema_rs.ValidationError):
            validator_of("1.37.0", "apps/v1", "Deployment").validate(resource)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("database.host", ""),
            ("database.ownerPassword", ""),
            ("api.replica", 3),
            ("ingress.tlsSecret", ""),
            ("ingress.enabled", "yes"),
            ("serviceMonitor.keySecret", ""),
            ("settings.IRONLAW_SECRET_KEY", "in the open"),
            ("settings.LOG_FORMAT", "text"),
            ("image.digest", "sha256:1"),
            ("node.serviceUrl", "http://plan.example.com"),
            ("node.enrolment.existingSecret", ""),
        ],
    )
    def test_values_that_cannot_be_meant_are_refused(self, path, value):
        base = LEAST if path.startswith("database") else MOST
        with pytest.raises(Refused, match=path.split(".")[-1] if value == "" else ".*"):
            rendered(changed(base, path, value))

    def test_it_is_of_this_version(self):
        for folder in (CHART, CHART / "charts" / "node"):
            assert yaml.safe_load((folder / "Chart.yaml").read_text())["appVersion"] == __version__


class TestPods:
    def test_each_can_as_little_as_in_compose(self, most):
        for pod, container in containers(most):
            own = container["securityContext"]
            assert (own["readOnlyRootFilesystem"], own["allowPrivilegeEscalation"]) == (True, False)
            assert own["capabilities"]["drop"] == SERVICES["api"]["cap_drop"]
            assert container["resources"]["limits"]["memory"]
            assert pod["automountServiceAccountToken"] is False
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
        for pod in pods(most).values():
            assert all(each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if "emptyDir" in each)

    def test_what_they_mount_is_there(self, least, most):
        for resources in (least, most):
            for pod in pods(resources).values():
                every = [*pod.get("initContainers", []), *pod["containers"]]
                mounted = {mount["name"] for container in every for mount in container["volumeMounts"]}
                assert mounted == {volume["name"] for volume in pod["volumes"]}

    def test_every_command_and_setting_is_one_of_the_service(self, most):
        known = {f"IRONLAW_{name.upper()}" for name in Settings.model_fields}
        for _, container in containers(most):
            if "args" in container:
                options_of(container["args"])
            own = {name for name in environment(container) if name.startswith("IRONLAW_")}
            assert {name for name in own if not name.startswith("IRONLAW_WORKER_")} <= known

    def test_every_file_that_a_setting_names_is_mounted(self, least, most):
        for resources in (least, most):
            for name in ("plan-api", "plan-worker", "plan-migration"):
                pod = pods(resources)[name]
                sources = [each for volume in pod["volumes"] for each in _list_sources(volume)]
                files = {item["path"] for source in sources for item in source["items"]}
                (container,) = pod["containers"]
                named = {
                    value.rpartition("/")[2]
                    for setting, value in environment(container).items()
                    if setting.endswith("_FILE") and value.startswith("/run/secrets/")
                }
                assert named == files - {"ca.crt"}
                assert ("sslrootcert" in environment(container)["IRONLAW_DATABASE_URL"]) == (
                    "ca.crt" in files
                )

    @pytest.mark.parametrize("values", SETS.values(), ids=SETS)
    def test_the_service_takes_its_settings(self, values, monkeypatch):
        (container,) = pods(rendered(values))["plan-api"]["containers"]
        for name, value in environment(container).items():
            monkeypatch.setenv(name, (value or "10.0.0.7").replace("$(POD_IP)", "10.0.0.7"))
        settings = Settings(host="0.0.0.0")  # noqa: S104  # as the image has it
        assert {"10.0.0.7", "plan-api.ironlaw.svc"} < set(settings.hosts)
        assert settings.background_threads == (2 if values is ALONE else 0)
        if values is MOST:
            assert settings.public_url == "https://plan.example.com"
            assert settings.oidc_client_secret_file is not None

    def test_only_the_migration_owns_the_schema(self, least):
        for name, pod in pods(least).items():
            owns = name == "plan-migration"
            (container,) = pod["containers"]
            assert ("ironlaw_owner@" in environment(container)["IRONLAW_DATABASE_URL"]) == owns
            assert ("database-owner-password" in str(pod)) == owns
        migration = least["Job", "plan-migration"]["metadata"]["annotations"]
        assert migration["helm.sh/hook"] == "pre-install,pre-upgrade"


class TestSecrets:
    def test_what_is_not_given_is_made_before_the_migration(self, least):
        key, passwords = least["Secret", "plan-secret-key"], least["Secret", "plan-database"]
        assert re.fullmatch(r"\w{64}", key["stringData"]["secret-key"])
        assert "before-hook-creation" not in str(key["metadata"]["annotations"])
        assert passwords["stringData"]["database-owner-password"] == "of the owner"
        for secret in (key, passwords):
            assert int(secret["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0

    def test_what_is_given_is_not_made(self, most):
        assert not [name for kind, name in most if kind == "Secret"]
        named = [source.get("secretName") or source["name"] for source in _list_all_sources(most)]
        assert set(named) == {"secret-key", "database", "oidc", "authority", "ironlaw-enrolment"}


class TestAround:
    def test_services_policies_and_budgets_find_their_pods(self, most):
        labels = {
            name: each["spec"]["template"]["metadata"]["labels"]
            for (_, name), each in most.items()
            if "template" in each["spec"]
        }
        for kind, name, selector in [
            ("Service", "plan-api", most["Service", "plan-api"]["spec"]["selector"]),
            *(
                (kind, name, each["spec"][member]["matchLabels"])
                for (kind, name), each in most.items()
                for member in ("selector", "podSelector")
                if isinstance(each.get("spec", {}).get(member), dict)
                and "matchLabels" in each["spec"][member]
            ),
        ]:
            found = [owner for owner, own in labels.items() if selector.items() <= own.items()]
            assert found == ["plan-api" if kind in {"Service", "ServiceMonitor"} else name]

    def test_nobody_reaches_a_worker_and_the_few_that_are_named_a_server(self, most):
        assert most["NetworkPolicy", "plan-worker"]["spec"]["ingress"] == []
        (way,) = most["NetworkPolicy", "plan-api"]["spec"]["ingress"]
        assert way["from"] == MOST["networkPolicy"]["from"]
        ports = [
            port["port"]
            for rule in most["NetworkPolicy", "plan-worker"]["spec"]["egress"]
            for port in rule["ports"]
        ]
        assert ports == [53, 53, 5432, 443, 8443, 4318]

    def test_the_ingress_ends_tls_for_the_public_address(self, most, least):
        spec = most["Ingress", "plan"]["spec"]
        assert spec["tls"] == [{"hosts": ["plan.example.com"], "secretName": "plan-tls"}]
        assert not [kind for kind, _ in least if kind == "Ingress"]

    def test_a_scaled_deployment_names_no_number(self, most):
        alone = rendered(ALONE)
        assert "replicas" not in most["Deployment", "plan-api"]["spec"]
        assert alone["Deployment", "plan-api"]["spec"]["replicas"] == 2
        assert {kind for kind, _ in alone} == {"Deployment", "Service", "Job", "Secret"}

    def test_a_node_runs_what_the_example_runs(self, most):
        """That of deploy/ironlaw-worker.yaml, for those without Helm."""
        pod = copy.deepcopy(pods(most)["plan-node"])
        (key,) = (volume["secret"].pop("items") for volume in pod["volumes"] if "secret" in volume)
        assert key == [{"key": "key", "path": "key"}]
        assert pod.pop("imagePullSecrets", None) is None
        example = copy.deepcopy(NODE_POD)
        for each in (pod, example):
            for container in [*each["initContainers"], *each["containers"]]:
                container.pop("image")
                container.pop("imagePullPolicy", None)
        text = yaml.safe_dump(example).replace("https://ironlaw.example.com", "https://plan.example.com")
        assert yaml.safe_dump(pod) == text


def _list_all_sources(resources):
    return [
        source
        for pod in pods(resources).values()
        for volume in pod["volumes"]
        for source in _list_sources(volume)
    ]


def _list_sources(volume):
    if "projected" in volume:
        return [source["secret"] for source in volume["projected"]["sources"]]
    return [volume["secret"]] if "secret" in volume else []
