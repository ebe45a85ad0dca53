# syntax=docker/dockerfile:1

FROM rust:1.95-slim-trixie AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo ./.cargo
COPY src ./src
COPY migrations ./migrations
# The manifest names test programs, whose files must be there although they are not built.
COPY tests ./tests
# The caches outlive the build; the program is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin dak \
    && cp target/release/dak /usr/local/bin/dak

FROM debian:trixie-slim
# No certificates are installed: dak brings the authorities that Mozilla trusts.
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin dak \
    && install -d -o dak -g dak /data
COPY --from=build /usr/local/bin/dak /usr/local/bin/dak
USER dak
VOLUME /data
EXPOSE 8080
# A container's own loopback address reaches nobody, so it listens on all of them. Without an API
# key the server refuses that: make one in the volume first, or say DAK_INSECURE=true where the port
# is published to this machine only.
ENV DAK_DATA_DIR=/data \
    DAK_LISTEN=0.0.0.0:8080
STOPSIGNAL SIGTERM
# `dak status` would need a key once there are any, so this asks /readyz, which needs none.
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["dak"]
CMD ["serve"]
