# Built in two stages, run in another: the image holds Python, the pinned requirements, the package and the site of
# the documentation.
FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python -m venv --without-pip /opt/ironlaw
COPY requirements.txt ./
RUN python -m pip --python /opt/ironlaw/bin/python install --require-hashes --requirement requirements.txt
COPY . .
RUN python -m pip --python /opt/ironlaw/bin/python install --no-build-isolation --no-deps .
# What built the package does not run it.
RUN python -m pip --python /opt/ironlaw/bin/python uninstall --yes \
    editables hatchling pathspec pluggy trove-classifiers

FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS guide
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY requirements-site.txt ./
RUN python -m pip install --require-hashes --requirement requirements-site.txt
COPY docs docs
COPY tools/site tools/site
RUN tools/site/build /opt/guide

FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
RUN groupadd --gid 10001 ironlaw \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin ironlaw \
    && install --directory --owner ironlaw --group ironlaw --mode 0700 /data
COPY --from=build /opt/ironlaw /opt/ironlaw
COPY --from=guide /opt/guide /opt/ironlaw/guide
ENV PATH=/opt/ironlaw/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    IRONLAW_HOST=0.0.0.0 IRONLAW_PORT=8000 IRONLAW_DATA_DIR=/data \
    IRONLAW_GUIDE_DIR=/opt/ironlaw/guide
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
ENTRYPOINT ["ironlaw"]
CMD ["serve"]
