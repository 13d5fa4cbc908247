#!/usr/bin/env bash
# Brings Seatrial to AWS, or brings it up to date: infrastructure, images, services. Safe to run again after any failure.
#
#   deploy/deploy.sh                 all steps
#   deploy/deploy.sh --dry-run       checks everything that can be checked, prints each command, changes nothing
#   deploy/deploy.sh --token NAME    makes an admin's token, prints it once, and removes it from the log
#
# Needs terraform 1.9 or newer, the AWS CLI with credentials, docker with buildx, and deploy/terraform/terraform.tfvars.
# STATE_BUCKET names the bucket of the state; it is made if it is missing (default PROJECT-state-ACCOUNT).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
terraform_dir=${TERRAFORM_DIR:-$here/terraform}
tfvars=$terraform_dir/terraform.tfvars

dry_run=false
token_for=
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry_run=true ;;
    --token)
        token_for=${2:-}
        [ -n "$token_for" ] || { echo "deploy.sh: --token needs a name" >&2; exit 2; }
        shift
        ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "deploy.sh: $1 is no option; see --help" >&2; exit 2 ;;
    esac
    shift
done

fail() { echo "deploy.sh: $1" >&2; [ -z "${2:-}" ] || echo "  fix: $2" >&2; exit 1; }
say() { printf '\n== %s\n' "$1"; }
run() {
    printf '+ %s\n' "$*"
    "$dry_run" || "$@"
}

# One value of terraform.tfvars, without comments and quotes.
value_of() { sed -nE "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\"?([^\"#]*)\"?.*/\1/p" "$tfvars" | sed 's/[[:space:]]*$//' | head -n 1; }

check() {
    [ -f "$tfvars" ] || fail "there is no $tfvars" "cp $terraform_dir/terraform.tfvars.example $tfvars, and fill it in"
    for name in aws_region project_name db_password certificate_arn allowed_cidrs; do
        case $(value_of "$name") in '' | '[]') fail "$name is empty in $tfvars" "terraform.tfvars.example says what belongs there" ;; esac
    done
    local missing=
    for tool in terraform aws docker; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    if [ -n "$missing" ]; then
        "$dry_run" || fail "not installed:$missing" "install them, or look at the steps with --dry-run"
        echo "not installed here:$missing"
    fi
}

# The tag is made from what the images are built from, so that the same source is pushed once, and a tag never moves.
image_tag() {
    (cd "$root" && { cat Dockerfile requirements.lock pyproject.toml; find src samples scripts web -type f \
        -not -path '*/node_modules/*' -not -path '*/__pycache__/*' -print0 | LC_ALL=C sort -z | xargs -0 cat; } |
        sha256sum | cut -c1-16)
}

prepare_state() {
    say "State in s3://$state_bucket"
    if "$dry_run" || ! aws s3api head-bucket --bucket "$state_bucket" 2>/dev/null; then
        local place=()
        [ "$region" = us-east-1 ] || place=(--create-bucket-configuration "LocationConstraint=$region")
        run aws s3api create-bucket --bucket "$state_bucket" --region "$region" "${place[@]}"
        run aws s3api put-public-access-block --bucket "$state_bucket" --public-access-block-configuration \
            BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
        run aws s3api put-bucket-versioning --bucket "$state_bucket" --versioning-configuration Status=Enabled
    fi
    run terraform -chdir="$terraform_dir" init -input=false -reconfigure -backend-config="bucket=$state_bucket" \
        -backend-config="key=$project.tfstate" -backend-config="region=$region"
}

apply() { run terraform -chdir="$terraform_dir" apply -input=false -auto-approve -var "image_tag=$tag" "$@"; }

push_images() {
    local registry=$account.dkr.ecr.$region.amazonaws.com
    say "Images, tag $tag"
    if "$dry_run"; then
        echo "+ aws ecr get-login-password --region $region | docker login --username AWS --password-stdin $registry"
    else
        aws ecr get-login-password --region "$region" | docker login --username AWS --password-stdin "$registry"
    fi
    for target in api worker; do
        local image=$registry/$project/$target:$tag
        if ! "$dry_run" && aws ecr describe-images --region "$region" --repository-name "$project/$target" \
            --image-ids "imageTag=$tag" >/dev/null 2>&1; then
            echo "$image is there already"
            continue
        fi
        run docker build --platform linux/amd64 --target "$target" -t "$image" "$root"
        run docker push "$image"
    done
}

make_token() {
    say "A token for $token_for"
    output() { terraform -chdir="$terraform_dir" output -raw "$1"; }
    local overrides task stream secret
    [[ $token_for =~ ^[A-Za-z0-9._-]{1,64}$ ]] || fail "a token's name has letters, digits, dots, _ and -"
    overrides="{\"containerOverrides\":[{\"name\":\"api\",\"command\":[\"token\",\"create\",\"$token_for\",\"--role\",\"admin\"]}]}"
    if "$dry_run"; then
        echo "+ aws ecs run-task --overrides $overrides ...; wait; print the token from its log; delete that log stream"
        return
    fi
    task=$(aws ecs run-task --region "$region" --cluster "$(output cluster)" --task-definition "$(output api_task)" \
        --launch-type FARGATE --network-configuration "$(output api_network)" --overrides "$overrides" \
        --query 'tasks[0].taskArn' --output text)
    aws ecs wait tasks-stopped --region "$region" --cluster "$(output cluster)" --tasks "$task"
    stream=api/api/${task##*/}
    secret=$(aws logs get-log-events --region "$region" --log-group-name "$(output api_logs)" --log-stream-name "$stream" \
        --query 'events[].message' --output text | tr '\t' '\n' | grep -m 1 '^st_') ||
        fail "the task made no token" "read the log stream $stream of $(output api_logs)"
    aws logs delete-log-stream --region "$region" --log-group-name "$(output api_logs)" --log-stream-name "$stream"
    echo "$secret"
    # The API does not start while there is no token at all.
    aws ecs update-service --region "$region" --cluster "$(output cluster)" --service "$(output api_service)" \
        --force-new-deployment >/dev/null
}

check
region=$(value_of aws_region)
project=$(value_of project_name)
if "$dry_run"; then
    account=${ACCOUNT:-123456789012}
else
    account=$(aws sts get-caller-identity --query Account --output text) ||
        fail "AWS does not know you" "aws configure, or aws sso login"
fi
state_bucket=${STATE_BUCKET:-$project-state-$account}
tag=$(image_tag)

prepare_state
if [ -n "$token_for" ]; then
    make_token
    exit 0
fi
say "Repositories"
apply -target=aws_ecr_repository.image
push_images
say "Everything else"
apply
cat <<DONE

Done. What is left:
  1. Point your host name at: terraform -chdir=$terraform_dir output -raw address
  2. The first token:         $0 --token YOUR-NAME
Old worker machines keep their version until they are idle; new ones start with $tag.
DONE
