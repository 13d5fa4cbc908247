# Whole URLs, because the service reads them from its environment. Only the roles of API and workers may read them.

resource "random_password" "secret_key" {
  length  = 48
  special = false
}

locals {
  secrets = {
    SEATRIAL_DATABASE_URL = "postgresql://seatrial:${var.db_password}@${aws_db_instance.main.endpoint}/seatrial?ssl=require"
    SEATRIAL_BROKER_URL   = "rediss://:${random_password.redis.result}@${aws_elasticache_replication_group.main.primary_endpoint_address}:6379/0"
    SEATRIAL_SECRET_KEY   = random_password.secret_key.result
    OPENROUTER_API_KEY    = var.openrouter_api_key
  }

  # An empty value cannot be kept as a secret. Names are no secrets, values are.
  secret_names = toset(concat(
    ["SEATRIAL_DATABASE_URL", "SEATRIAL_BROKER_URL", "SEATRIAL_SECRET_KEY"],
    nonsensitive(var.openrouter_api_key) == "" ? [] : ["OPENROUTER_API_KEY"],
  ))

  # Settings without secrets, the same for API and workers.
  settings = {
    AWS_REGION                 = var.aws_region
    SEATRIAL_AUTH              = "token"
    SEATRIAL_BLOBS_URL         = "s3://${aws_s3_bucket.files.id}/seatrial"
    SEATRIAL_S3_REGION         = var.aws_region
    SEATRIAL_LOG_FORMAT        = "json"
    SEATRIAL_MACHINE_CPUS      = tostring(var.worker_machine.cpus)
    SEATRIAL_MACHINE_MEMORY_MB = tostring(var.worker_machine.memory_mb)
  }
}

resource "aws_secretsmanager_secret" "main" {
  #checkov:skip=CKV2_AWS_57:Rotation is a change of db_password and an apply: the API and the workers have to start anew with it.
  for_each = local.secret_names

  name                    = "${local.name}/${each.key}"
  description             = "${each.key} of ${local.name}"
  kms_key_id              = aws_kms_key.main.arn
  recovery_window_in_days = 7
}

resource "aws_secretsmanager_secret_version" "main" {
  for_each = aws_secretsmanager_secret.main

  secret_id     = each.value.id
  secret_string = local.secrets[each.key]
}
