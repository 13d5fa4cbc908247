# The API and its page: Fargate tasks without privileges behind a load balancer that ends TLS.

resource "aws_lb" "main" {
  #checkov:skip=CKV2_AWS_28:Only var.allowed_cidrs reach it, and every request needs a token; add a web ACL if you open it to the world.
  #checkov:skip=CKV_AWS_150:Protection from deletion is on unless var.protect is false.
  #checkov:skip=CKV2_AWS_20:There is no HTTP listener at all: tokens must not travel in clear, not even once.
  name                       = local.name
  load_balancer_type         = "application"
  internal                   = false
  security_groups            = [aws_security_group.balancer.id]
  subnets                    = [for subnet in aws_subnet.public : subnet.id]
  drop_invalid_header_fields = true
  preserve_host_header       = true
  enable_deletion_protection = var.protect
  # The longest that AWS allows: AgentCompass waits for a whole trial in one request.
  idle_timeout = 4000

  access_logs {
    bucket  = aws_s3_bucket.logs.id
    prefix  = "balancer"
    enabled = true
  }

  depends_on = [aws_s3_bucket_policy.logs]
}

resource "aws_lb_target_group" "api" {
  #checkov:skip=CKV_AWS_378:From the balancer to the tasks it is plain HTTP inside the VPC, between two security groups.
  name                 = "${local.name}-api"
  vpc_id               = aws_vpc.main.id
  target_type          = "ip"
  protocol             = "HTTP"
  port                 = 8000
  deregistration_delay = 60

  health_check {
    path                = "/health"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 5
    matcher             = "200"
  }
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.main.arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = var.certificate_arn

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.api.arn
  }
}

resource "aws_ecs_cluster" "main" {
  name = local.name

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_task_definition" "api" {
  family                   = "${local.name}-api"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = 1024
  memory                   = 2048
  execution_role_arn       = aws_iam_role.api_start.arn
  task_role_arn            = aws_iam_role.api.arn

  volume {
    name = "home"
  }

  volume {
    name = "tmp"
  }

  container_definitions = jsonencode([{
    name                   = "api"
    image                  = "${aws_ecr_repository.image["api"].repository_url}:${var.image_tag}"
    essential              = true
    command                = ["up", "--workers", "0"]
    user                   = "60999:60999"
    readonlyRootFilesystem = true
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
    portMappings           = [{ containerPort = 8000, protocol = "tcp" }]
    environment            = [for name, value in merge(local.settings, local.publishing) : { name = name, value = value }]
    secrets                = [for name, secret in aws_secretsmanager_secret.main : { name = name, valueFrom = secret.arn }]
    stopTimeout            = 60
    mountPoints = [
      { sourceVolume = "home", containerPath = "/var/lib/seatrial", readOnly = false },
      { sourceVolume = "tmp", containerPath = "/tmp", readOnly = false },
    ]
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.main["api"].name
        awslogs-region        = var.aws_region
        awslogs-stream-prefix = "api"
      }
    }
  }])
}

locals {
  # The API publishes the signal that the workers' group follows.
  publishing = {
    SEATRIAL_CLOUDWATCH_NAMESPACE = "Seatrial"
  }
}

resource "aws_ecs_service" "api" {
  name                               = "api"
  cluster                            = aws_ecs_cluster.main.id
  task_definition                    = aws_ecs_task_definition.api.arn
  desired_count                      = var.api_count
  launch_type                        = "FARGATE"
  platform_version                   = "LATEST"
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 60
  propagate_tags                     = "SERVICE"

  network_configuration {
    subnets          = [for subnet in aws_subnet.private : subnet.id]
    security_groups  = [aws_security_group.api.id]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.api.arn
    container_name   = "api"
    container_port   = 8000
  }

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  depends_on = [aws_lb_listener.https, aws_secretsmanager_secret_version.main]
}
