# An image with one static binary and nothing else: `docker build .`. Where the public base image cannot be reached,
# `docker build --build-arg BUILD_IMAGE=… .` takes another.

# Anything with the Rust of rust-toolchain.toml, a C compiler and a static C library.
ARG BUILD_IMAGE=rust:1.95-bookworm
# The base image of the result: empty.
ARG BASE_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
# The target has to be named, or the flag would also apply to procedural macros. It is the host's own, on amd64 and on
# arm64.
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN rustc --version --verbose | sed -n 's/^host: //p' >/target

# The dependencies are a layer of their own, which is rebuilt only when a manifest or Cargo.lock changes. The targets of
# tests are removed from the manifest, since their files are not here. Cargo.lock names the crate that they share.
COPY Cargo.toml Cargo.lock ./
COPY tests/support/Cargo.toml tests/support/Cargo.toml
RUN sed -i '/^\[\[test\]\]/,/^$/d; /^\[\[bench\]\]/,/^$/d' Cargo.toml \
    && mkdir -p src tests/support/src && touch src/lib.rs tests/support/src/lib.rs && echo 'fn main() {}' >src/main.rs \
    && cargo build --locked --release --bin pod-reaper --target "$(cat /target)"

COPY docs/reasons.md docs/reasons.md
COPY src src
# The sources must be newer than the build of the empty files.
RUN touch src/lib.rs src/main.rs \
    && cargo build --locked --release --bin pod-reaper --target "$(cat /target)" \
    && cp "target/$(cat /target)/release/pod-reaper" /pod-reaper

FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="pod-reaper" \
    org.opencontainers.image.description="Force-deletes pods stuck Terminating on NotReady Kubernetes nodes" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /pod-reaper /pod-reaper
# A number, because there is no /etc/passwd. Kubernetes also needs a number to verify that it is not root.
USER 65532:65532
ENTRYPOINT ["/pod-reaper"]
