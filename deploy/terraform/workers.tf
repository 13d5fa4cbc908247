# Worker machines. The group only grows: target tracking on open work may not scale in. A worker that holds trials protects
# its machine; one that was idle for long enough ends its machine and lowers the group's size by one.

data "aws_ssm_parameter" "amazon_linux" {
  name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
}

locals {
  workers_name = "${local.name}-workers"
  workers_arn  = "arn:${local.partition}:autoscaling:${var.aws_region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/${local.workers_name}"
  worker_image = "${aws_ecr_repository.image["worker"].repository_url}:${var.image_tag}"
}

resource "aws_launch_template" "worker" {
  name                   = local.workers_name
  image_id               = data.aws_ssm_parameter.amazon_linux.insecure_value
  update_default_version = true
  user_data = base64encode(templatefile("${path.module}/worker-boot.sh.tftpl", {
    region        = var.aws_region
    name          = local.name
    image         = local.worker_image
    registry      = split("/", local.worker_image)[0]
    log_group     = aws_cloudwatch_log_group.main["worker"].name
    secret_names  = local.secret_names
    drain_seconds = var.drain_seconds
    settings = merge(local.settings, {
      SEATRIAL_PLATFORM            = "ec2"
      SEATRIAL_EC2_LIFECYCLE_HOOK  = "drain"
      SEATRIAL_DRAIN_SECONDS       = tostring(var.drain_seconds)
      SEATRIAL_LEAVE_WHEN_IDLE_SEC = tostring(var.idle_seconds)
      SEATRIAL_MINIMUM_WORKERS     = tostring(var.worker_ec2_min_count)
    })
  }))

  iam_instance_profile {
    arn = aws_iam_instance_profile.worker.arn
  }

  network_interfaces {
    associate_public_ip_address = false
    security_groups             = [aws_security_group.worker.id]
  }

  # Version 2 only, and one hop: the worker has the machine's network and reaches it, containers and sandboxes do not.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size           = var.worker_disk_gb
      volume_type           = "gp3"
      throughput            = 250
      encrypted             = true
      kms_key_id            = aws_kms_key.main.arn
      delete_on_termination = true
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = { Name = local.workers_name }
  }

  monitoring {
    enabled = true
  }
}

resource "aws_autoscaling_group" "workers" {
  name                    = local.workers_name
  min_size                = var.worker_ec2_min_count
  max_size                = var.worker_ec2_max_count
  vpc_zone_identifier     = [for subnet in aws_subnet.private : subnet.id]
  health_check_type       = "EC2"
  default_instance_warmup = 120
  # A worker protects its machine before it claims. A new machine is protected from the start, until its worker decides.
  protect_from_scale_in = true
  # The zones are not balanced by ending machines.
  suspended_processes = ["AZRebalance"]
  enabled_metrics     = ["GroupDesiredCapacity", "GroupInServiceInstances"]

  mixed_instances_policy {
    instances_distribution {
      on_demand_base_capacity                  = var.worker_ec2_min_count
      on_demand_percentage_above_base_capacity = 100 - var.worker_spot_percentage
      spot_allocation_strategy                 = "price-capacity-optimized"
    }

    launch_template {
      launch_template_specification {
        launch_template_id = aws_launch_template.worker.id
        version            = aws_launch_template.worker.latest_version
      }

      dynamic "override" {
        for_each = var.worker_instance_types

        content {
          instance_type = override.value
        }
      }
    }
  }

  initial_lifecycle_hook {
    name                 = "drain"
    lifecycle_transition = "autoscaling:EC2_INSTANCE_TERMINATING"
    heartbeat_timeout    = var.drain_seconds + 120
    default_result       = "CONTINUE"
  }

  tag {
    key                 = "Name"
    value               = local.workers_name
    propagate_at_launch = true
  }

  tag {
    key                 = "Project"
    value               = var.project_name
    propagate_at_launch = true
  }

  lifecycle {
    ignore_changes = [desired_capacity]
  }

  depends_on = [aws_secretsmanager_secret_version.main]
}

# seatrial_work_units is queued plus running work in machines: one machine per unit. It adds; it never removes.
resource "aws_autoscaling_policy" "work_units" {
  name                   = "work-units"
  autoscaling_group_name = aws_autoscaling_group.workers.name
  policy_type            = "TargetTrackingScaling"

  target_tracking_configuration {
    target_value     = 1
    disable_scale_in = true

    customized_metric_specification {
      metrics {
        id          = "units"
        return_data = false

        metric_stat {
          stat = "Maximum"

          metric {
            namespace   = "Seatrial"
            metric_name = "seatrial_work_units"
          }
        }
      }

      metrics {
        id          = "machines"
        return_data = false

        metric_stat {
          stat = "Average"

          metric {
            namespace   = "AWS/AutoScaling"
            metric_name = "GroupInServiceInstances"

            dimensions {
              name  = "AutoScalingGroupName"
              value = aws_autoscaling_group.workers.name
            }
          }
        }
      }

      metrics {
        id          = "load"
        label       = "Units of work per machine"
        expression  = "units / IF(machines < 1, 1, machines)"
        return_data = true
      }
    }
  }
}
