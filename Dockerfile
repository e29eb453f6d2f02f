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

FROM ${NODE}
# Warnings about the stage of a Node feature are for those who develop it.
ENV NODE_ENV=production NODE_NO_WARNINGS=1
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY api api
COPY workflows workflows
COPY activities activities
COPY worker worker
COPY controller controller
USER 10001:10001
ENTRYPOINT ["node"]
CMD ["worker/main.ts"]
