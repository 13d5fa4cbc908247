terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
    random = {
      source  = "hashicorp/random"
      version = "~> 3.6"
    }
  }

  # The state has passwords in it: keep it in an encrypted bucket that few can read.
  # deploy.sh gives the bucket: terraform init -backend-config=bucket=... -backend-config=key=... -backend-config=region=...
  backend "s3" {
    encrypt      = true
    use_lockfile = true
  }
}

provider "aws" {
  region = var.aws_region

  default_tags {
    tags = {
      Project   = var.project_name
      ManagedBy = "terraform"
    }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  name      = var.project_name
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  zones     = [for letter in var.zone_letters : "${var.aws_region}${letter}"]
  images    = toset(["api", "worker"])
}
