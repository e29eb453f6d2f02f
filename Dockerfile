# One image for both programs. glibc, because Temporal's native core has no build for musl.
ARG NODE=node:24.22.3-trixie-slim

FROM ${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No install scripts: nothing the programs need is built or fetched by one.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force
# Temporal's core comes for every platform at once, and types and source maps help nobody in a container: 560 to 250 MB.
RUN cd node_modules/@temporalio/core-bridge/releases && \
    ls | grep --invert-match "^$(uname -m)-unknown-linux-gnu$" | xargs rm -r
RUN find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete

# The workflows as one file, so that no container bundles at its start (webpack and swc write caches).
FROM dependencies AS bundle
COPY workflows workflows
COPY worker worker
RUN node worker/bundle.ts workflows.bundle.js

# For docker-compose.yml: the simulator and the set-up of a local stack, with their development dependencies.
FROM ${NODE} AS local
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY test/simulator test/simulator
COPY deploy deploy
USER 10001:10001
ENTRYPOINT ["node"]

FROM ${NODE}
# Warnings about the stage of a Node feature are for those who develop it.
ENV NODE_ENV=production NODE_NO_WARNINGS=1 PROXY_OPERATOR_WORKFLOW_BUNDLE=/app/workflows.bundle.js
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=bundle /app/workflows.bundle.js ./
COPY package.json LICENSE ./
COPY api api
COPY workflows workflows
COPY activities activities
COPY worker worker
COPY controller controller
USER 10001:10001
ENTRYPOINT ["node"]
CMD ["worker/main.ts"]
