"""The fields of KEDA's resources that ``deploy/kubernetes`` uses, as JSON schemas, after its documentation (2.13).

Kubernetes' own schemas come from ``kubernetes-validate``; KEDA's are in no package."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}


def _thing(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": fields}


_TRIGGER = _thing(
    ("type", "metadata"),
    type={"const": "metrics-api"},
    name=_TEXT,
    # KEDA takes texts only here, numbers included.
    metadata=_thing(
        ("url", "valueLocation", "targetValue"),
        url=_TEXT,
        valueLocation=_TEXT,
        targetValue=_TEXT,
        activationTargetValue=_TEXT,
        format={"enum": ["json", "xml", "yaml", "prometheus"]},
        unsafeSsl={"enum": ["true", "false"]},
        authMode={"enum": ["apiKey", "basic", "tls", "bearer"]},
    ),
    authenticationRef=_thing(
        ("name",), name=_TEXT, kind={"enum": ["TriggerAuthentication", "ClusterTriggerAuthentication"]}
    ),
)

SCALED_JOB = _thing(
    ("jobTargetRef", "triggers"),
    jobTargetRef={"type": "object"},  # a Job's spec: Kubernetes' schema has it
    pollingInterval=_COUNT,
    successfulJobsHistoryLimit=_COUNT,
    failedJobsHistoryLimit=_COUNT,
    envSourceContainerName=_TEXT,
    minReplicaCount=_COUNT,
    maxReplicaCount=_COUNT,
    rollout=_thing(strategy={"enum": ["default", "gradual"]}, propagationPolicy={"enum": ["foreground", "background"]}),
    scalingStrategy=_thing(
        strategy={"enum": ["default", "custom", "accurate", "eager"]},
        customScalingQueueLengthDeduction=_COUNT,
        customScalingRunningJobPercentage=_TEXT,
        pendingPodConditions={"type": "array", "items": _TEXT},
        multipleScalersCalculation={"enum": ["max", "min", "avg", "sum"]},
    ),
    triggers={"type": "array", "minItems": 1, "items": _TRIGGER},
)

TRIGGER_AUTHENTICATION = _thing(
    secretTargetRef={
        "type": "array",
        "minItems": 1,
        "items": _thing(("parameter", "name", "key"), parameter=_TEXT, name=_TEXT, key=_TEXT),
    }
)

SPECS = {"ScaledJob": SCALED_JOB, "TriggerAuthentication": TRIGGER_AUTHENTICATION}
