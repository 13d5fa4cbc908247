# One role per kind of process, each with what it needs and nothing else.

data "aws_iam_policy_document" "ecs_assumes" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

data "aws_iam_policy_document" "ec2_assumes" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "read_secrets" {
  statement {
    sid       = "Secrets"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [for secret in aws_secretsmanager_secret.main : secret.arn]
  }

  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt"]
    resources = [aws_kms_key.main.arn]
  }
}

data "aws_iam_policy_document" "pull" {
  for_each = local.images

  # Signing in to the registry has no resource.
  #checkov:skip=CKV_AWS_356:GetAuthorizationToken takes no resource.
  statement {
    sid       = "SignIn"
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"]
  }

  statement {
    sid       = "Pull"
    actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    resources = [aws_ecr_repository.image[each.key].arn]
  }
}

data "aws_iam_policy_document" "write_logs" {
  for_each = local.images

  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.main[each.key].arn}:*"]
  }
}

data "aws_iam_policy_document" "files" {
  statement {
    sid       = "Files"
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    resources = ["${aws_s3_bucket.files.arn}/seatrial/*"]
  }

  statement {
    sid       = "List"
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.files.arn]

    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = ["seatrial/*"]
    }
  }

  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [aws_kms_key.main.arn]
  }
}

data "aws_iam_policy_document" "publish" {
  #checkov:skip=CKV_AWS_111:PutMetricData takes no resource; the condition limits it to one namespace.
  #checkov:skip=CKV_AWS_356:As above.
  statement {
    sid       = "Signal"
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = ["Seatrial"]
    }
  }
}

data "aws_iam_policy_document" "own_group" {
  #checkov:skip=CKV_AWS_356:Describe calls of Auto Scaling take no resource.
  statement {
    sid = "Leave"
    actions = [
      "autoscaling:CompleteLifecycleAction",
      "autoscaling:SetInstanceProtection",
      "autoscaling:TerminateInstanceInAutoScalingGroup",
    ]
    resources = [local.workers_arn]
  }

  statement {
    sid       = "Look"
    actions   = ["autoscaling:DescribeAutoScalingInstances"]
    resources = ["*"]
  }
}

# What ECS does to start a task: pull, read secrets, open the log.
resource "aws_iam_role" "api_start" {
  name               = "${local.name}-api-start"
  assume_role_policy = data.aws_iam_policy_document.ecs_assumes.json
}

resource "aws_iam_role_policy" "api_start" {
  for_each = {
    pull    = data.aws_iam_policy_document.pull["api"].json
    logs    = data.aws_iam_policy_document.write_logs["api"].json
    secrets = data.aws_iam_policy_document.read_secrets.json
  }

  name   = each.key
  role   = aws_iam_role.api_start.id
  policy = each.value
}

# What the API itself may do.
resource "aws_iam_role" "api" {
  name               = "${local.name}-api"
  assume_role_policy = data.aws_iam_policy_document.ecs_assumes.json
}

resource "aws_iam_role_policy" "api" {
  for_each = {
    files  = data.aws_iam_policy_document.files.json
    signal = data.aws_iam_policy_document.publish.json
  }

  name   = each.key
  role   = aws_iam_role.api.id
  policy = each.value
}

resource "aws_iam_role" "worker" {
  name               = "${local.name}-worker"
  assume_role_policy = data.aws_iam_policy_document.ec2_assumes.json
}

resource "aws_iam_role_policy" "worker" {
  for_each = {
    pull    = data.aws_iam_policy_document.pull["worker"].json
    logs    = data.aws_iam_policy_document.write_logs["worker"].json
    secrets = data.aws_iam_policy_document.read_secrets.json
    files   = data.aws_iam_policy_document.files.json
    group   = data.aws_iam_policy_document.own_group.json
  }

  name   = each.key
  role   = aws_iam_role.worker.id
  policy = each.value
}

# Session Manager instead of SSH: no port, no keys, every session in CloudTrail.
resource "aws_iam_role_policy_attachment" "worker_sessions" {
  role       = aws_iam_role.worker.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_instance_profile" "worker" {
  name = "${local.name}-worker"
  role = aws_iam_role.worker.name
}

data "aws_iam_policy_document" "rds_assumes" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["monitoring.rds.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "database_monitoring" {
  name               = "${local.name}-database-monitoring"
  assume_role_policy = data.aws_iam_policy_document.rds_assumes.json
}

resource "aws_iam_role_policy_attachment" "database_monitoring" {
  role       = aws_iam_role.database_monitoring.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonRDSEnhancedMonitoringRole"
}

data "aws_iam_policy_document" "flow_assumes" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["vpc-flow-logs.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "flow" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
    resources = ["${aws_cloudwatch_log_group.flow.arn}:*"]
  }
}

resource "aws_iam_role" "flow" {
  name               = "${local.name}-flow"
  assume_role_policy = data.aws_iam_policy_document.flow_assumes.json
}

resource "aws_iam_role_policy" "flow" {
  name   = "logs"
  role   = aws_iam_role.flow.id
  policy = data.aws_iam_policy_document.flow.json
}
