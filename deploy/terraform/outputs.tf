output "address" {
  description = "The load balancer's name. Point the name of your certificate at it."
  value       = aws_lb.main.dns_name
}

output "repositories" {
  description = "Where deploy.sh pushes the images."
  value       = { for key, repository in aws_ecr_repository.image : key => repository.repository_url }
}

output "cluster" {
  description = "ECS cluster of the API."
  value       = aws_ecs_cluster.main.name
}

output "api_service" {
  description = "ECS service of the API."
  value       = aws_ecs_service.api.name
}

output "api_task" {
  description = "Task definition of the API; deploy.sh runs its command `token create` with it."
  value       = aws_ecs_task_definition.api.family
}

output "api_network" {
  description = "Network of a single task of the API, as `aws ecs run-task` takes it."
  value       = "awsvpcConfiguration={subnets=[${join(",", [for subnet in aws_subnet.private : subnet.id])}],securityGroups=[${aws_security_group.api.id}],assignPublicIp=DISABLED}"
}

output "api_logs" {
  description = "Log group of the API."
  value       = aws_cloudwatch_log_group.main["api"].name
}

output "workers" {
  description = "Auto Scaling group of the worker machines."
  value       = aws_autoscaling_group.workers.name
}

output "bucket" {
  description = "Bucket of the files."
  value       = aws_s3_bucket.files.id
}

output "database" {
  description = "Host and port of the database."
  value       = aws_db_instance.main.endpoint
}
