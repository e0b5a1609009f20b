# The image, from a clean clone: `docker build .` or `podman build .`, for the builder's platform, or for the one that
# --platform names: linux/amd64 or linux/arm64. Another is compiled across, not emulated.
#
# Not these bytes are what a release has, but those of release/build, which `--target release` only copies.

# First, because old builders build all stages up to the one that is asked for.
FROM scratch AS release
# Set by the builder: the platform of the image. The context has a folder for each.
ARG TARGETARCH
# The binary, and what its licences ask to be passed on. It holds nothing else: no shell, no libraries.
COPY ${TARGETARCH}/ /
# A number, because there is no /etc/passwd. Kubernetes also needs a number to verify that it is not root.
USER 65532:65532
ENTRYPOINT ["/pod-reaper"]

FROM --platform=$BUILDPLATFORM rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
ARG TARGETARCH
WORKDIR /source
COPY . .
# The C library is linked statically, hence a target that is named even where it is the builder's own.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/source/target,sharing=locked \
    set -eu; \
    case $TARGETARCH in \
    amd64) arch=x86_64 debian=x86-64 ;; \
    arm64) arch=aarch64 debian=aarch64 ;; \
    *) echo "there is no image for $TARGETARCH" >&2; exit 1 ;; \
    esac; \
    target=$arch-unknown-linux-gnu linker=$arch-linux-gnu-gcc; \
    command -v "$linker" >/dev/null || { \
        apt-get update; \
        apt-get install --yes --no-install-recommends "gcc-$debian-linux-gnu" "libc6-dev-$TARGETARCH-cross"; \
        rustup target add "$target"; \
    }; \
    export RUSTFLAGS="-C target-feature=+crt-static -C linker=$linker"; \
    cargo fetch --locked; \
    cargo build --frozen --release --bin pod-reaper --target "$target"; \
    mkdir /image; \
    SOURCE_DATE_EPOCH=0 release/dependencies "$target" /image; \
    rm /image/sbom.cdx.json; \
    install -m 755 "target/$target/release/pod-reaper" /image/; \
    install -m 644 LICENSE /image/

FROM scratch
LABEL org.opencontainers.image.title=pod-reaper org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/pod-reaper"]
