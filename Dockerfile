# Two images: `service` runs the service, and the operator as `node operator/main.ts`; `worker` runs the jobs in pods,
# `worker-cuda` on NVIDIA GPUs. TypeScript runs as it is, so nothing is compiled.
#
#   docker build --target service -t model-optimization-service .
#   docker build --target worker -t model-optimization-worker .
#
# Where no registry can be reached: `--build-context dependencies=DIR`, a folder that holds `node_modules` as below, and
# `--build-context dashboard=build/dashboard` after `npm run dashboard`.
ARG BASE_IMAGE=node:24-bookworm-slim
# CUDA 13 and cuDNN 9, which the provider of `cuda-providers` is linked to.
ARG CUDA_IMAGE=nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

FROM ${BASE_IMAGE} AS install
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional

FROM scratch AS dependencies
COPY --from=install /app/node_modules /node_modules

# The page is built by packages that the image itself does without.
FROM ${BASE_IMAGE} AS dashboard-build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY scripts/build-dashboard.ts scripts/
COPY src src
RUN node scripts/build-dashboard.ts

FROM scratch AS dashboard
COPY --from=dashboard-build /app/build/dashboard /

# Everything but ONNX Runtime, which is three quarters of the bytes.
FROM ${BASE_IMAGE} AS service-modules
WORKDIR /app
# Which modules there are: without it, builders take the next step from their cache although others are mounted.
COPY package-lock.json ./
RUN --mount=type=bind,from=dependencies,target=/dependencies \
    cp -r /dependencies/node_modules . \
    && rm -r node_modules/onnxruntime-node \
    && find node_modules \( -name '*.map' -o -name '*.d.?ts' -o -name '*.d.ts' \) -delete

# Everything but the Kubernetes client, OpenTelemetry, and ONNX Runtime for other platforms.
FROM ${BASE_IMAGE} AS worker-modules
WORKDIR /app
COPY package-lock.json ./
RUN --mount=type=bind,from=dependencies,target=/dependencies \
    cp -r /dependencies/node_modules . \
    && rm -r node_modules/@kubernetes node_modules/@opentelemetry \
    && find node_modules/onnxruntime-node/bin -type f \
       -not -path "*/linux/$(node -p process.arch)/*" -delete \
    && find node_modules \( -name '*.map' -o -name '*.d.?ts' -o -name '*.d.ts' \) -delete

FROM ${BASE_IMAGE} AS service
LABEL org.opencontainers.image.title="Model Optimization Service" \
      org.opencontainers.image.description="The service and the operator" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache
WORKDIR /app
COPY --from=service-modules /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY operator operator
COPY --from=dashboard / build/dashboard
RUN install --directory --owner=10001 $NODE_COMPILE_CACHE
USER 10001:10001
# Takes a third off the time to start, and 30 MB off the memory. Code is kept for the very flags that it was compiled with.
RUN node --input-type=module --eval "await import('./src/service/start-service.ts')" \
    && node --max-semi-space-size=2 --heap-growing-percent=25 --single-threaded-gc --no-incremental-marking --optimize-for-size \
       operator/main.ts --help
ENTRYPOINT ["node"]
CMD ["src/service/main.ts"]

FROM ${BASE_IMAGE} AS worker
LABEL org.opencontainers.image.title="Model Optimization Worker" \
      org.opencontainers.image.description="Runs a job: fetch, shard, optimize, evaluate, store" \
      org.opencontainers.image.licenses="Apache-2.0"
# ONNX Runtime reports the models it loads to its makers unless it is told not to.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache ORT_DISABLE_TELEMETRY=1
WORKDIR /app
COPY --from=worker-modules /app/node_modules node_modules
COPY package.json ./
COPY src src
RUN install --directory --owner=10001 $NODE_COMPILE_CACHE
USER 10001:10001
RUN node src/worker/warm-compile-cache.ts
ENTRYPOINT ["node"]
CMD ["src/worker/main.ts"]

# The npm package has no CUDA provider, the Python package of the same version has. `--build-context cuda-providers=DIR`
# takes it from a folder instead, for instance for another CUDA.
FROM ${PYTHON_IMAGE} AS cuda-wheel
WORKDIR /wheel
COPY package.json ./
RUN version=$(python -c 'import json; print(json.load(open("package.json"))["dependencies"]["onnxruntime-node"])') \
    && pip download --no-deps --only-binary :all: "onnxruntime-gpu==$version" \
    && python -m zipfile --extract onnxruntime_gpu-*.whl .

FROM scratch AS cuda-providers
COPY --from=cuda-wheel /wheel/onnxruntime/capi/libonnxruntime_providers_shared.so /
COPY --from=cuda-wheel /wheel/onnxruntime/capi/libonnxruntime_providers_cuda.so /

# ONNX Runtime looks for providers beside its own library.
FROM ${CUDA_IMAGE} AS worker-cuda
LABEL org.opencontainers.image.title="Model Optimization Worker for CUDA" \
      org.opencontainers.image.description="Runs a job on an NVIDIA GPU" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache ORT_DISABLE_TELEMETRY=1
WORKDIR /app
COPY --from=worker /usr/local/bin/node /usr/local/bin/
COPY --from=worker /app .
COPY --from=cuda-providers /libonnxruntime_providers_shared.so node_modules/onnxruntime-node/bin/napi-v6/linux/x64/
COPY --from=cuda-providers /libonnxruntime_providers_cuda.so node_modules/onnxruntime-node/bin/napi-v6/linux/x64/
USER 10001:10001
ENTRYPOINT ["node"]
CMD ["src/worker/main.ts"]
