#!/bin/sh
# Runs a command of an image build with what the builder was given as secrets: the certificates of an inspecting proxy
# (id=ca) and the URL of a package index (id=index). Both are optional, and neither stays in the image.
set -eu
if [ -s /run/secrets/ca ]; then
    export SSL_CERT_FILE=/run/secrets/ca PIP_CERT=/run/secrets/ca NODE_EXTRA_CA_CERTS=/run/secrets/ca
fi
if [ -s /run/secrets/index ]; then
    url=$(cat /run/secrets/index)
    export PIP_INDEX_URL="$url" UV_DEFAULT_INDEX="$url"
fi
exec "$@"
