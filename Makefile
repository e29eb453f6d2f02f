# Front door of a fresh checkout: installs what is missing, then runs it. `make help` lists the targets.
NODE := ./node_modules/.bin/node
NPM_RUN := npm run --silent

.DEFAULT_GOAL := help
.PHONY: help install tools demo up down test test-integration-proxmox check-proxmox check lint fmt proxmox-token-secret

help: ## Show this list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-24s %s\n' "$$name" "$$text"; done

install:
	@./deploy/dev/install.sh

tools: install ## Fetch Temporal, etcd, kube-apiserver and kubectl into the cache, if they are missing
	@$(NODE) deploy/dev/installTools.ts

demo: install ## Show a Proxy go from kubectl apply to Ready and back to nothing, on a private stack
	@$(NODE) deploy/dev/demo.ts

up: install ## Start the local stack and leave it running; Ctrl-C ends it
	@$(NODE) deploy/dev/up.ts

down: install ## End the local stacks of this checkout, also after a crash
	@$(NODE) deploy/dev/down.ts

test: install ## Check types, lint, format, and run the tests of every level
	@./deploy/dev/testPackages.sh
	@$(NODE) deploy/dev/runTests.ts

test-integration-proxmox: install ## Run the steps against a real Proxmox VE host named by PROXMOX_* variables; cleans up
	@$(NODE) test/pve/main.ts

check-proxmox: install ## Check that host from the operator's point of view; creates nothing
	@$(NODE) test/pve/main.ts --check-only

check: install ## Check types
	@$(NPM_RUN) check

lint: install ## Run the linter
	@$(NPM_RUN) lint

fmt: install ## Format every file
	@$(NPM_RUN) fmt

proxmox-token-secret: install ## Put the Proxmox API token and CA into the cluster's Secret, after checking both files
	@$(NODE) deploy/secret/main.ts
