variable "aws_region" {
  description = "Region of everything."
  type        = string
}

variable "project_name" {
  description = "Prefix of every name: lower-case letters, digits and hyphens, at most 20."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.project_name))
    error_message = "Lower-case letters, digits and hyphens, 2 to 20 of them, beginning with a letter."
  }
}

variable "db_password" {
  description = "Password of the database's account. Letters and digits: it becomes part of a URL."
  type        = string
  sensitive   = true

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{16,64}$", var.db_password))
    error_message = "16 to 64 letters, digits, _ or -."
  }
}

variable "openrouter_api_key" {
  description = "OpenRouter's key for jobs that bring none. Empty: every job brings its own."
  type        = string
  default     = ""
  sensitive   = true
}

variable "certificate_arn" {
  description = "ACM certificate of the name that people use for the service."
  type        = string

  validation {
    condition     = can(regex("^arn:[^:]+:acm:", var.certificate_arn))
    error_message = "The ARN of an ACM certificate in this region."
  }
}

variable "allowed_cidrs" {
  description = "Addresses that may reach the service: your office, your VPN."
  type        = list(string)

  validation {
    condition     = length(var.allowed_cidrs) > 0
    error_message = "Nobody could reach the service."
  }
}

variable "image_tag" {
  description = "Tag of the images in ECR. deploy.sh sets it to the digest of what it built."
  type        = string
  default     = "0.1.0"
}

variable "vpc_cidr" {
  description = "Addresses of the VPC, a /16."
  type        = string
  default     = "10.40.0.0/16"
}

variable "zone_letters" {
  description = "Two availability zones of the region, by letter."
  type        = list(string)
  default     = ["a", "b"]
}

variable "api_count" {
  description = "Tasks of the API."
  type        = number
  default     = 2
}

variable "worker_ec2_min_count" {
  description = "Worker machines that always run."
  type        = number
  default     = 1
}

variable "worker_ec2_max_count" {
  description = "Most worker machines."
  type        = number
  default     = 200

  validation {
    condition     = var.worker_ec2_max_count >= 1 && var.worker_ec2_max_count <= 1000
    error_message = "1 to 1000."
  }
}

variable "worker_instance_types" {
  description = "Types of worker machines, the most wanted first. All of them have the size in worker_machine."
  type        = list(string)
  default     = ["m7i.2xlarge", "m7a.2xlarge", "m6i.2xlarge", "m6a.2xlarge"]
}

variable "worker_machine" {
  description = "Size of one worker machine: the unit in which open work is counted."
  type        = object({ cpus = number, memory_mb = number })
  default     = { cpus = 8, memory_mb = 31000 }
}

variable "worker_spot_percentage" {
  description = "Share of the machines above the minimum that are spot machines. They drain on AWS's notice of two minutes."
  type        = number
  default     = 0
}

variable "worker_disk_gb" {
  description = "Disk of a worker machine: images and the files of running trials."
  type        = number
  default     = 200
}

variable "drain_seconds" {
  description = "Time that running trials get when a machine has to leave. What has not ended then goes back to the queue."
  type        = number
  default     = 1800

  validation {
    condition     = var.drain_seconds >= 60 && var.drain_seconds <= 7000
    error_message = "60 to 7000: AWS waits for at most two hours."
  }
}

variable "idle_seconds" {
  description = "An idle worker above the minimum leaves after this time."
  type        = number
  default     = 300
}

variable "db_instance_class" {
  description = "Machine of the database."
  type        = string
  default     = "db.m7g.large"
}

variable "redis_node_type" {
  description = "Machine of Redis. It carries hints only."
  type        = string
  default     = "cache.t4g.small"
}

variable "alarm_email" {
  description = "Who gets the alarms; empty for nobody."
  type        = string
  default     = ""
}

variable "protect" {
  description = "Keeps database, bucket and load balancer from being deleted by mistake."
  type        = bool
  default     = true
}
