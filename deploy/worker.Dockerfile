# The image of a worker: no server, the libraries of CUDA from their packages, the driver from the host.
#   docker build --file deploy/worker.Dockerfile --tag ironlaw-worker .
FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python -m venv --without-pip /opt/ironlaw
COPY requirements-worker.txt ./
RUN python -m pip --python /opt/ironlaw/bin/python install --require-hashes --requirement requirements-worker.txt
COPY . .
RUN python -m pip --python /opt/ironlaw/bin/python install --no-build-isolation --no-deps .
# What built the package does not run it.
RUN python -m pip --python /opt/ironlaw/bin/python uninstall --yes \
    editables hatchling pathspec pluggy trove-classifiers

FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
RUN groupadd --gid 10001 ironlaw \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin ironlaw \
    && install --directory --owner ironlaw --group ironlaw --mode 0700 /var/lib/ironlaw-worker
COPY --from=build /opt/ironlaw /opt/ironlaw
ENV PATH=/opt/ironlaw/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    IRONLAW_WORKER_DIR=/var/lib/ironlaw-worker/state IRONLAW_WORKER_LOCK_FILE=/var/lib/ironlaw-worker/lock
USER 10001:10001
WORKDIR /var/lib/ironlaw-worker
VOLUME /var/lib/ironlaw-worker
STOPSIGNAL SIGTERM
ENTRYPOINT ["ironlaw"]
CMD ["worker", "run"]
