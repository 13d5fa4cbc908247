resource "aws_cloudwatch_log_group" "main" {
  for_each = local.images

  name              = "/${local.name}/${each.key}"
  retention_in_days = 365
  kms_key_id        = aws_kms_key.main.arn
}

resource "aws_cloudwatch_log_group" "flow" {
  name              = "/${local.name}/flow"
  retention_in_days = 365
  kms_key_id        = aws_kms_key.main.arn
}

resource "aws_sns_topic" "alarms" {
  name              = "${local.name}-alarms"
  kms_master_key_id = aws_kms_key.main.arn
}

resource "aws_sns_topic_subscription" "email" {
  count = var.alarm_email == "" ? 0 : 1

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_email
}

locals {
  # Each names what an operator would look at first; docs/troubleshooting.md has the steps.
  alarms = {
    waiting-too-long = {
      text       = "A trial has waited for half an hour: workers do not start, or are at their maximum."
      namespace  = "Seatrial"
      metric     = "seatrial_queue_oldest_seconds"
      dimensions = {}
      statistic  = "Maximum"
      comparison = "GreaterThanThreshold"
      threshold  = 1800
      missing    = "notBreaching"
    }
    no-signal = {
      text       = "The API has published no signal for ten minutes: nothing scales."
      namespace  = "Seatrial"
      metric     = "seatrial_work_units"
      dimensions = {}
      statistic  = "SampleCount"
      comparison = "LessThanThreshold"
      threshold  = 1
      missing    = "breaching"
    }
    no-worker = {
      text       = "No worker machine is in service."
      namespace  = "AWS/AutoScaling"
      metric     = "GroupInServiceInstances"
      dimensions = { AutoScalingGroupName = aws_autoscaling_group.workers.name }
      statistic  = "Maximum"
      comparison = "LessThanThreshold"
      threshold  = min(var.worker_ec2_min_count, 1)
      missing    = "breaching"
    }
    api-errors = {
      text       = "The API answers with 5xx."
      namespace  = "AWS/ApplicationELB"
      metric     = "HTTPCode_Target_5XX_Count"
      dimensions = { LoadBalancer = aws_lb.main.arn_suffix }
      statistic  = "Sum"
      comparison = "GreaterThanThreshold"
      threshold  = 20
      missing    = "notBreaching"
    }
    api-unhealthy = {
      text       = "A task of the API does not answer /health."
      namespace  = "AWS/ApplicationELB"
      metric     = "UnHealthyHostCount"
      dimensions = { LoadBalancer = aws_lb.main.arn_suffix, TargetGroup = aws_lb_target_group.api.arn_suffix }
      statistic  = "Maximum"
      comparison = "GreaterThanThreshold"
      threshold  = 0
      missing    = "notBreaching"
    }
    database-busy = {
      text       = "The database's processor is above 80 %."
      namespace  = "AWS/RDS"
      metric     = "CPUUtilization"
      dimensions = { DBInstanceIdentifier = aws_db_instance.main.identifier }
      statistic  = "Average"
      comparison = "GreaterThanThreshold"
      threshold  = 80
      missing    = "breaching"
    }
    database-disk = {
      text       = "The database has less than 5 GB of free disk."
      namespace  = "AWS/RDS"
      metric     = "FreeStorageSpace"
      dimensions = { DBInstanceIdentifier = aws_db_instance.main.identifier }
      statistic  = "Minimum"
      comparison = "LessThanThreshold"
      threshold  = 5000000000
      missing    = "breaching"
    }
    database-connections = {
      text       = "The database is close to its maximum of connections."
      namespace  = "AWS/RDS"
      metric     = "DatabaseConnections"
      dimensions = { DBInstanceIdentifier = aws_db_instance.main.identifier }
      statistic  = "Maximum"
      comparison = "GreaterThanThreshold"
      threshold  = 0.8 * (10 * var.api_count + 4 * var.worker_ec2_max_count + 50)
      missing    = "notBreaching"
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "main" {
  for_each = local.alarms

  alarm_name          = "${local.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  treat_missing_data  = each.value.missing
  period              = 300
  evaluation_periods  = 2
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}
