"""``deploy/terraform``, as far as it can be checked without the program and a cloud: syntax, references, promises.

``make policy`` scans it with a policy scanner besides."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import hcl2
import pytest

from tests.command_line import ROOT
from tests.deploy.hcl_format import formatted
from tests.deploy.terraform import Module, plain, read_module, strings

FOLDER = ROOT / "deploy" / "terraform"
SHELLCHECK = Path(sys.executable).with_name("shellcheck")
FILES = sorted(FOLDER.glob("*.tf"))


@pytest.fixture(scope="module")
def module() -> Module:
    return read_module(FOLDER)


@pytest.mark.parametrize("path", [*FILES, FOLDER / "terraform.tfvars.example"], ids=lambda path: path.name)
def test_a_file_has_the_layout_of_terraform_fmt(path: Path) -> None:
    assert path.read_text() == formatted(path.read_text())


def test_the_layout_aligns_and_indents_as_terraform_fmt_does() -> None:
    untidy = 'a "b" {\nshort = 1\n  longer_name=2\n\n x = f({\n y = "{"\n long = [1]\n })\n}\n'
    tidy = 'a "b" {\n  short       = 1\n  longer_name = 2\n\n  x = f({\n    y    = "{"\n    long = [1]\n  })\n}\n'
    assert formatted(untidy) == tidy
    assert formatted(tidy) == tidy


def test_every_reference_is_declared(module: Module) -> None:
    assert module.referred - set(module.declared) == set()
    assert len(module.referred) > 80


def test_a_reference_to_nothing_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(
        'resource "aws_vpc" "main" {\n  tags = { Name = "${var.missing}-${local.gone}" }\n}\n'
    )
    found = read_module(tmp_path)
    assert found.referred - set(found.declared) == {("var", "missing"), ("local", "gone")}


def test_nothing_is_declared_for_nobody(module: Module) -> None:
    named = {pair for pair in module.declared if pair[0] in ("var", "local") or pair[0].startswith("data.")}
    assert named - module.referred == set()


def test_variables_and_outputs_are_described_and_typed(module: Module) -> None:
    for name, body in module.of_kind("var").items():
        assert len(body["description"]) > 15, name
        assert "type" in body, name
    for name, body in module.outputs.items():
        assert len(body["description"]) > 10, name
    secret = {name for name, body in module.of_kind("var").items() if body.get("sensitive")}
    assert secret == {"db_password", "openrouter_api_key"}


def test_the_example_sets_what_has_no_default_and_tbench_runners_names(module: Module) -> None:
    with (FOLDER / "terraform.tfvars.example").open() as file:
        example = plain(hcl2.load(file))
    variables = module.of_kind("var")
    assert set(example) <= set(variables)
    assert set(example) >= {name for name, body in variables.items() if "default" not in body}
    assert set(example) >= {
        "aws_region",
        "project_name",
        "db_password",
        "openrouter_api_key",
        "worker_ec2_max_count",
    }
    assert example["db_password"] == example["openrouter_api_key"] == ""


def test_what_is_stored_is_encrypted_with_our_key(module: Module) -> None:
    ours = "${aws_kms_key.main.arn}"
    database = module.declared["aws_db_instance", "main"]
    assert database["storage_encrypted"] is True and database["kms_key_id"] == ours
    assert database["publicly_accessible"] is False and database["multi_az"] is True
    redis = module.declared["aws_elasticache_replication_group", "main"]
    assert redis["transit_encryption_enabled"] is redis["at_rest_encryption_enabled"] is True
    assert redis["auth_token"] == "${random_password.redis.result}"
    for group in module.of_kind("aws_cloudwatch_log_group").values():
        assert group["kms_key_id"] == ours
    [disk] = module.declared["aws_launch_template", "worker"]["block_device_mappings"]
    assert disk["ebs"][0]["encrypted"] is True and disk["ebs"][0]["kms_key_id"] == ours
    assert module.declared["aws_secretsmanager_secret", "main"]["kms_key_id"] == ours


def test_only_the_load_balancer_is_public_and_speaks_tls_only(module: Module) -> None:
    assert {name for name, body in module.of_kind("aws_subnet").items() if body["map_public_ip_on_launch"]} == set()
    listeners = module.of_kind("aws_lb_listener")
    assert [(body["port"], body["protocol"]) for body in listeners.values()] == [(443, "HTTPS")]
    assert "TLS13" in listeners["https"]["ssl_policy"]
    from_outside = [
        name for name, body in module.of_kind("aws_vpc_security_group_ingress_rule").items() if "cidr_ipv4" in body
    ]
    assert from_outside == ["balancer_https"]


def test_the_group_only_grows_and_machines_drain(module: Module) -> None:
    [tracking] = module.declared["aws_autoscaling_policy", "work_units"]["target_tracking_configuration"]
    assert tracking["disable_scale_in"] is True
    assert {"Seatrial", "seatrial_work_units"} <= set(strings(tracking))
    group = module.declared["aws_autoscaling_group", "workers"]
    assert group["protect_from_scale_in"] is True
    assert group["suspended_processes"] == ["AZRebalance"]
    [hook] = group["initial_lifecycle_hook"]
    assert hook["lifecycle_transition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    assert module.of_kind("var")["worker_ec2_min_count"]["default"] == 1
    assert module.of_kind("var")["worker_ec2_max_count"]["default"] == 200


def test_the_metadata_service_is_version_two_and_one_hop_away(module: Module) -> None:
    [options] = module.declared["aws_launch_template", "worker"]["metadata_options"]
    assert (options["http_tokens"], options["http_put_response_hop_limit"]) == ("required", 1)


def test_the_api_has_no_root_no_privileges_and_a_read_only_file_system(module: Module) -> None:
    [text] = [text for text in strings(module.declared["aws_ecs_task_definition", "api"]) if "readonlyRoot" in text]
    for promised in (r'user\s*=\s*"60999:60999"', r"readonlyRootFilesystem\s*=\s*true", r'drop\s*=\s*\["ALL"\]'):
        assert re.search(promised, text), promised
    assert "docker.sock" not in text and "privileged" not in text


_NO_RESOURCE = {
    "autoscaling:DescribeAutoScalingInstances",
    "cloudwatch:PutMetricData",
    "ecr:GetAuthorizationToken",
}
"""AWS takes no resource for these."""


def test_roles_have_named_actions_on_named_resources(module: Module) -> None:
    for name, body in module.of_kind("data.aws_iam_policy_document").items():
        if name == "key":  # a key's policy names the key as "*"
            continue
        for statement in body["statement"]:
            if statement.get("effect") == "Deny":
                continue
            assert not [action for action in statement["actions"] if "*" in action], name
            if statement.get("resources") == ["*"]:
                assert set(statement["actions"]) <= _NO_RESOURCE, name


def test_no_secret_is_in_the_start_script_or_the_task(module: Module) -> None:
    for kind, name in (("aws_launch_template", "worker"), ("aws_ecs_task_definition", "api")):
        text = " ".join(strings(module.declared[kind, name]))
        for secret in ("db_password", "openrouter_api_key", "random_password", "local.secrets"):
            assert secret not in text, (name, secret)


def test_the_bucket_keeps_what_the_rules_for_other_buckets_keep(module: Module) -> None:
    rules = module.declared["aws_s3_bucket_lifecycle_configuration", "files"]["rule"]
    ours = {
        rule["id"]: [
            rule.get("abort_incomplete_multipart_upload", [{}])[0].get("days_after_initiation"),
            rule.get("noncurrent_version_expiration", [{}])[0].get("noncurrent_days"),
        ]
        for rule in rules
    }
    by_hand = json.loads((ROOT / "deploy" / "s3-lifecycle.json").read_text())["Rules"]
    assert ours == {
        rule["ID"]: [
            rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation"),
            rule.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays"),
        ]
        for rule in by_hand
    }


class StartScript:
    """The template of a machine's start, rendered with values of its own as Terraform would."""

    def __init__(self) -> None:
        self.template = (FOLDER / "worker-boot.sh.tftpl").read_text()

    @property
    def names(self) -> set[str]:
        text = self.template.replace("$${", "")
        loops = set(re.findall(r"%\{ for ([\w, ]+) in (\w+) ~\}", text))
        bound = {name.strip() for names, _ in loops for name in names.split(",")}
        used = {word for inside in re.findall(r"\$\{([^}]*)\}", text) for word in re.findall(r"[a-z_]\w*", inside)}
        return (used | {collection for _, collection in loops}) - bound

    def render(self, values: dict[str, Any]) -> str:
        text = re.sub(
            r"%\{ for ([\w, ]+) in (\w+) ~\}\n(.*?)%\{ endfor ~\}\n",
            lambda m: _loop(m, values),
            self.template,
            flags=re.S,
        )
        text = re.sub(r"(?<!\$)\$\{(\w+) \+ (\d+)\}", lambda m: str(values[m[1]] + int(m[2])), text)
        text = re.sub(r"(?<!\$)\$\{(\w+)\}", lambda m: str(values[m[1]]), text)
        return text.replace("$${", "${")


def _loop(found: re.Match[str], values: dict[str, Any]) -> str:
    names, items, body = found[1].split(", "), values[found[2]], found[3]
    pairs = items.items() if isinstance(items, dict) else ((item,) for item in items)
    rounds = [{**values, **dict(zip(names, pair, strict=True))} for pair in pairs]
    return "".join(re.sub(r"\$\{(\w+)\}", lambda m, own=own: str(own[m[1]]), body) for own in rounds)


@pytest.fixture(scope="module")
def start_script() -> str:
    values = {name: f"a-{name.replace('_', '-')}" for name in StartScript().names}
    lists = {"drain_seconds": 1800, "settings": {"A": "1", "B": "2"}, "secret_names": ["S", "T"]}
    return StartScript().render({**values, **lists})


def test_the_start_script_is_given_what_it_uses(module: Module) -> None:
    [text] = [text for text in strings(module.declared["aws_launch_template", "worker"]) if "templatefile" in text]
    outer = re.sub(r"merge\(.*\)", "merge()", text, flags=re.S)
    given = set(re.findall(r"[{,\s](\w+)\s*[=:](?!=)", outer.split("tftpl", 1)[1]))
    assert given == StartScript().names


def test_the_start_script_is_sound(start_script: str, tmp_path: Path) -> None:
    inner = re.findall(r"cat > (\S+) <<'SCRIPT'\n(.*?)\nSCRIPT\n", start_script, flags=re.S)
    assert len(inner) == 2
    for name, text in (("boot", start_script), *inner):
        path = tmp_path / Path(name).name
        path.write_text(text)
        subprocess.run([SHELLCHECK, "--shell=bash", path], check=True)
    assert "printf '%s=%s\\n' 'T'" in start_script and "\nB=2\n" in start_script


class Deployment:
    """``deploy.sh`` beside a copy of the Terraform files."""

    def __init__(self, folder: Path, **filled: str) -> None:
        self.folder = folder / "terraform"
        shutil.copytree(FOLDER, self.folder)
        text = (self.folder / "terraform.tfvars.example").read_text()
        for name, value in filled.items():
            text = re.sub(rf"(?m)^({name}\s*=) \S+", lambda found, value=value: f"{found[1]} {value}", text)
        if filled:
            (self.folder / "terraform.tfvars").write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", ROOT / "deploy" / "deploy.sh", *arguments]
        environment = {"PATH": "/usr/bin:/bin", "TERRAFORM_DIR": str(self.folder)}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


FILLED = {
    "db_password": '"0123456789abcdef0123"',
    "certificate_arn": '"arn:aws:acm:eu-central-1:1:certificate/x"',
    "allowed_cidrs": '["203.0.113.0/24"]',
    "aws_region": '"eu-central-1"',
}


def test_a_dry_run_shows_every_step_and_no_secret(tmp_path: Path) -> None:
    done = Deployment(tmp_path, **FILLED).run("--dry-run")
    assert done.returncode == 0, done.stderr
    steps = (
        "create-bucket",
        " init ",
        "-target=aws_ecr_repository.image",
        "--target api",
        "docker push",
        "--target worker",
    )
    places = [done.stdout.index(step) for step in steps]
    assert places == sorted(places)
    assert "LocationConstraint=eu-central-1" in done.stdout
    assert "0123456789abcdef0123" not in done.stdout + done.stderr


def test_the_same_source_has_the_same_tag(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, **FILLED)
    tags = [re.findall(r"image_tag=(\w{16})", deployment.run("--dry-run").stdout) for _ in range(2)]
    assert tags[0] == tags[1] and len(set(tags[0])) == 1


@pytest.mark.parametrize("missing", ["db_password", "certificate_arn", "allowed_cidrs"])
def test_an_empty_value_is_named_before_anything_happens(missing: str, tmp_path: Path) -> None:
    emptied = "[]" if missing == "allowed_cidrs" else '""'
    done = Deployment(tmp_path, **{**FILLED, missing: emptied}).run("--dry-run")
    assert done.returncode == 1
    assert f"{missing} is empty" in done.stderr and "fix:" in done.stderr
    assert "+ " not in done.stdout


def test_a_missing_file_and_an_unknown_option_are_said(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    assert "terraform.tfvars.example" in deployment.run("--dry-run").stderr
    unknown = deployment.run("--destroy")
    assert unknown.returncode == 2 and "--destroy" in unknown.stderr


def test_the_outputs_that_deploy_sh_reads_exist(module: Module) -> None:
    script = (ROOT / "deploy" / "deploy.sh").read_text()
    read = set(re.findall(r"\$\(output (\w+)\)", script)) | set(re.findall(r"output -raw (\w+)", script))
    assert read and read <= set(module.outputs)
