"""``deploy/kubernetes``: valid against Kubernetes' schemas, whole, and as safe as we say."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.command_line import ROOT
from tests.deploy import keda

FOLDER = ROOT / "deploy" / "kubernetes"
VERSION = "1.31"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


RESOURCES = [document for name in KUSTOMIZATION["resources"] for document in documents(name)]
EXAMPLES = documents("secret.example.yaml")


def resource(kind: str, name: str) -> dict[str, Any]:
    [found] = [item for item in RESOURCES if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return found


def worker_pod() -> dict[str, Any]:
    pod: dict[str, Any] = resource("ScaledJob", "worker")["spec"]["jobTargetRef"]["template"]
    return pod


def api_pod() -> dict[str, Any]:
    pod: dict[str, Any] = resource("Deployment", "api")["spec"]["template"]
    return pod


def validate(document: dict[str, Any]) -> None:
    if not document["apiVersion"].startswith("keda.sh/"):
        kubernetes_validate.validate(document, VERSION, strict=True)
        return
    jsonschema.validate(document["spec"], keda.SPECS[document["kind"]])
    if document["kind"] == "ScaledJob":
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": document["spec"]["jobTargetRef"]}
        kubernetes_validate.validate(job, VERSION, strict=True)


@pytest.mark.parametrize(
    "document", [*RESOURCES, *EXAMPLES], ids=lambda item: f"{item['kind']}-{item['metadata']['name']}"
)
def test_a_resource_is_valid(document: dict[str, Any]) -> None:
    validate(document)
    if document["kind"] != "Namespace":
        assert document["metadata"]["namespace"] == "seatrial"


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("Deployment", "api", "spec.template.spec.containers.0.livenesProbe", {}),
        ("Deployment", "api", "spec.replicas", "two"),
        ("ScaledJob", "worker", "spec.scaleDown", {}),
        ("ScaledJob", "worker", "spec.jobTargetRef.template.spec.tolerances", []),
        ("ScaledJob", "worker", "spec.triggers.0.metadata.targetValue", 1),
        ("PodDisruptionBudget", "worker", "spec.minimumAvailable", 1),
    ],
)
def test_a_slip_would_be_found(kind: str, name: str, path: str, value: object) -> None:
    document = yaml.safe_load(yaml.safe_dump(resource(kind, name)))
    *way, last = path.split(".")
    place: Any = document
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    with pytest.raises((kubernetes_validate.ValidationError, jsonschema.ValidationError)):
        validate(document)


def test_every_file_is_part_of_the_kustomization() -> None:
    others = {"kustomization.yaml", "secret.example.yaml"}
    assert {path.name for path in FOLDER.glob("*.yaml")} - others == set(KUSTOMIZATION["resources"])
    images = {re.sub(":.*", "", pod["spec"]["containers"][0]["image"]) for pod in (api_pod(), worker_pod())}
    assert {image["name"] for image in KUSTOMIZATION["images"]} == images


def test_what_pods_refer_to_exists() -> None:
    made = {(item["kind"], item["metadata"]["name"]) for item in (*RESOURCES, *EXAMPLES)}
    for pod in (api_pod(), worker_pod()):
        assert ("ServiceAccount", pod["spec"]["serviceAccountName"]) in made
        for source in pod["spec"]["containers"][0]["envFrom"]:
            [(kind, reference)] = source.items()
            assert ({"configMapRef": "ConfigMap", "secretRef": "Secret"}[kind], reference["name"]) in made
        mounts = {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        assert mounts == {volume["name"] for volume in pod["spec"]["volumes"]}
    [reference] = resource("TriggerAuthentication", "seatrial-keda")["spec"]["secretTargetRef"]
    [secret] = [item for item in EXAMPLES if item["metadata"]["name"] == reference["name"]]
    assert reference["key"] in secret["stringData"]


def test_no_secret_is_in_a_manifest() -> None:
    names = {"SEATRIAL_DATABASE_URL", "SEATRIAL_BROKER_URL", "SEATRIAL_SECRET_KEY", "OPENROUTER_API_KEY"}
    assert names <= set(EXAMPLES[0]["stringData"])
    assert not names & set(resource("ConfigMap", "seatrial")["data"])
    assert [item for item in RESOURCES if item["kind"] == "Secret"] == []


def test_the_api_is_unprivileged() -> None:
    pod, [container] = api_pod()["spec"], api_pod()["spec"]["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] != 0
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]


def test_workers_have_their_own_nodes_and_no_access_to_the_cluster() -> None:
    pod = worker_pod()["spec"]
    assert pod["nodeSelector"] == {"seatrial.io/worker": "true"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["seatrial.io/worker"]
    assert pod["containers"][0]["securityContext"]["privileged"] is True
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
    for pod in (api_pod()["spec"], worker_pod()["spec"]):
        assert pod["automountServiceAccountToken"] is False


def test_nothing_in_the_cluster_ends_a_worker_that_holds_trials() -> None:
    spec, pod = resource("ScaledJob", "worker")["spec"], worker_pod()
    assert spec["rollout"] == {"strategy": "gradual"}
    assert spec["jobTargetRef"]["backoffLimit"] == 0
    assert "activeDeadlineSeconds" not in spec["jobTargetRef"] and "activeDeadlineSeconds" not in pod["spec"]
    assert pod["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    budget = resource("PodDisruptionBudget", "worker")["spec"]
    assert budget["minAvailable"] > spec["maxReplicaCount"]
    assert budget["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_a_worker_that_must_go_has_time_to_drain() -> None:
    spec = worker_pod()["spec"]
    [container] = spec["containers"]
    drain = {item["name"]: item["value"] for item in container["env"]}["SEATRIAL_DRAIN_SECONDS"]
    assert container["lifecycle"]["preStop"]["exec"]["command"][-1] == f"kill -TERM 1; sleep {drain}"
    assert spec["terminationGracePeriodSeconds"] >= int(drain) + 60


def test_the_signal_is_counted_in_machines_of_the_workers_size() -> None:
    settings = resource("ConfigMap", "seatrial")["data"]
    requests = worker_pod()["spec"]["containers"][0]["resources"]["requests"]
    assert float(settings["SEATRIAL_MACHINE_MEMORY_MB"]) == 1024 * int(requests["memory"].removesuffix("Gi"))
    assert abs(float(settings["SEATRIAL_MACHINE_CPUS"]) - float(requests["cpu"])) <= 1


def test_policies_select_pods_and_keep_the_metadata_service_away() -> None:
    labels = [pod["metadata"]["labels"] for pod in (api_pod(), worker_pod())]
    policies = {item["metadata"]["name"]: item["spec"] for item in RESOURCES if item["kind"] == "NetworkPolicy"}
    assert policies["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("api", "worker"):
        assert policies[name]["podSelector"]["matchLabels"] in labels
        for rule in policies[name]["egress"]:
            for target in rule.get("to", []):
                assert "169.254.0.0/16" in target["ipBlock"]["except"]
    assert "ingress" not in policies["worker"]
