# Images of Seatrial, all from one Debian with Python 3.12 or newer:
#
#   docker build --target api -t seatrial-api .        the API and its page: no root, no container socket, read-only root
#   docker build --target worker -t seatrial-worker .  runs trials: needs --privileged for the daemonless sandbox
#   docker build -t seatrial .                         both in one container, on port 8080
#
# BASE may be any Debian 13. A proxy's certificates and a package index of your own come as build secrets, which stay in no layer:
#   docker build --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt --secret id=index,src=index-url.txt .
ARG BASE=debian:trixie-slim

FROM ${BASE} AS python
ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
RUN echo 'Acquire::Retries "5";' > /etc/apt/apt.conf.d/80retries \
    && apt-get update -q \
    && apt-get install -y -q --no-install-recommends python3 ca-certificates tini \
    && rm -rf /var/lib/apt/lists/*

FROM python AS tooled
RUN apt-get update -q && apt-get install -y -q --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY scripts/build-tools.lock scripts/with-secrets.sh scripts/
RUN --mount=type=secret,id=ca --mount=type=secret,id=index \
    python3 -m venv .venv && sh scripts/with-secrets.sh \
    .venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r scripts/build-tools.lock

# The page. One that is built and up to date is taken as it is.
FROM tooled AS page
COPY web web
COPY docs/reference/openapi.json docs/reference/
COPY scripts/build-page.sh scripts/
COPY src/seatrial/pag[e] src/seatrial/page/
RUN --mount=type=secret,id=ca --mount=type=cache,target=/root/.npm sh scripts/with-secrets.sh sh scripts/build-page.sh

# Every package by its hash in the lock, before the code, so that a change of code installs nothing again.
FROM tooled AS build
COPY requirements.lock pyproject.toml ./
RUN --mount=type=secret,id=ca --mount=type=secret,id=index --mount=type=cache,target=/root/.cache/uv \
    .venv/bin/uv venv --quiet --no-project --python /usr/bin/python3 /opt/seatrial \
    && sh scripts/with-secrets.sh .venv/bin/uv pip install --quiet --compile-bytecode --link-mode copy \
    --python /opt/seatrial/bin/python --require-hashes -c requirements.lock -r pyproject.toml --extra aws
COPY . .
COPY --from=page /build/src/seatrial/page src/seatrial/page
RUN .venv/bin/uv build --quiet --wheel --no-build-isolation --python .venv/bin/python --out-dir dist . \
    && .venv/bin/uv pip install --quiet --compile-bytecode --link-mode copy --no-deps \
    --python /opt/seatrial/bin/python dist/*.whl

# The account has a number that no host uses. Only the two folders of data are its own.
FROM python AS installed
RUN groupadd --gid 60999 seatrial \
    && useradd --uid 60999 --gid 60999 --home-dir /var/lib/seatrial --no-create-home --shell /usr/sbin/nologin seatrial \
    && install -d -o seatrial -g seatrial -m 750 /var/lib/seatrial /var/cache/seatrial
COPY --from=build /opt/seatrial /opt/seatrial
ENV PATH=/opt/seatrial/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    SEATRIAL_HOME=/var/lib/seatrial SEATRIAL_CACHE=/var/cache/seatrial SEATRIAL_HOST=0.0.0.0 SEATRIAL_LOG_FORMAT=json
WORKDIR /var/lib/seatrial
ENTRYPOINT ["tini", "--", "seatrial"]

FROM installed AS api
ENV SEATRIAL_PORT=8000
USER 60999:60999
VOLUME /var/lib/seatrial
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['SEATRIAL_PORT'] + '/health', timeout=3)"]
CMD ["up", "--workers", "0"]

# The sandbox without a daemon needs root and tools of the system; the list is the one that `make run` installs from.
FROM installed AS tools
COPY scripts/system-packages.sh scripts/container-start.sh /usr/local/share/seatrial/
RUN apt-get update -q && sh /usr/local/share/seatrial/system-packages.sh run \
    && rm -rf /var/lib/apt/lists/* /var/log/*.log \
    && chown root:root /var/lib/seatrial /var/cache/seatrial
VOLUME ["/var/lib/seatrial", "/var/cache/seatrial"]
ENTRYPOINT ["tini", "--", "sh", "/usr/local/share/seatrial/container-start.sh", "seatrial"]

FROM tools AS worker
STOPSIGNAL SIGTERM
CMD ["worker"]

# As Terminal-Bench Server is started: docker run -p 8080:8080 -v /var/run/docker.sock:/var/run/docker.sock --env-file .env IMAGE
FROM tools AS service
ENV SEATRIAL_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['SEATRIAL_PORT'] + '/health', timeout=3)"]
CMD ["up"]
