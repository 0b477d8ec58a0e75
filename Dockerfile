# Two images: `service` runs the service, and the operator as `node operator/main.ts`; `worker` runs the jobs in pods,
# `worker-cuda` on NVIDIA GPUs. TypeScript runs as it is, so nothing is compiled.
#
#   docker build --target service -t model-optimization-service .
#   docker build --target worker -t model-optimization-worker .
#
# Where no registry can be reached: `--build-context dependencies=DIR`, a folder that holds `node_modules` as below.
ARG BASE_IMAGE=node:24-bookworm-slim
# Ends in libraries of CUDA 12 and cuDNN 9 on the loader's path.
ARG CUDA_IMAGE=nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04

FROM ${BASE_IMAGE} AS install
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional

FROM scratch AS dependencies
COPY --from=install /app/node_modules /node_modules

# Everything but ONNX Runtime, which is three quarters of the bytes.
FROM ${BASE_IMAGE} AS service-modules
WORKDIR /app
RUN --mount=type=bind,from=dependencies,target=/dependencies \
    cp -r /dependencies/node_modules . \
    && rm -r node_modules/onnxruntime-node \
    && find node_modules \( -name '*.map' -o -name '*.d.ts' \) -delete

# Everything but the Kubernetes client and ONNX Runtime for other platforms.
FROM ${BASE_IMAGE} AS worker-modules
WORKDIR /app
RUN --mount=type=bind,from=dependencies,target=/dependencies \
    cp -r /dependencies/node_modules . \
    && rm -r node_modules/@kubernetes \
    && find node_modules/onnxruntime-node/bin -type f \
       -not -path "*/linux/$(node -p process.arch)/*" -delete \
    && find node_modules \( -name '*.map' -o -name '*.d.ts' \) -delete

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
RUN install --directory --owner=10001 $NODE_COMPILE_CACHE
USER 10001:10001
# Takes a third off the time to start.
RUN node --input-type=module --eval "await import('./src/server/start-service.ts')"
ENTRYPOINT ["node"]
CMD ["src/server/main.ts"]

FROM ${BASE_IMAGE} AS worker
LABEL org.opencontainers.image.title="Model Optimization Worker" \
      org.opencontainers.image.description="Runs a job: fetch, shard, optimize, evaluate, store" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache
WORKDIR /app
COPY --from=worker-modules /app/node_modules node_modules
COPY package.json ./
COPY src src
RUN install --directory --owner=10001 $NODE_COMPILE_CACHE
USER 10001:10001
RUN node --input-type=module --eval "await import('./src/worker/work-on-assignment.ts')"
ENTRYPOINT ["node"]
CMD ["src/worker/main.ts"]
