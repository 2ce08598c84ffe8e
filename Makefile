# "make help" lists the targets.

# Build flags are part of Go's cache keys: use the same ones everywhere.
export GOFLAGS := -trimpath

# Additional flags for go test, such as -race or -run.
TESTFLAGS ?=
# The directories of the Go modules that people work in.
MODULES := . kubebox e2e bench tools

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/
	CGO_ENABLED=0 go build -ldflags='-s -w' -o bin/ ./cmd/...

.PHONY: kubernetes
kubernetes: ## Build Kubernetes for the tests and the demo into bin/k8s (takes minutes the first time)
	go -C kubebox run ./cmd/cluster build

.PHONY: test
test: kubernetes ## Run the tests that need no node: unit tests and tests against a real API server
	go test $(TESTFLAGS) ./...
	go run ./cmd/kubectl-akri test examples

.PHONY: e2e
e2e: kubernetes ## Run the tests on real nodes: kubelet, containerd, pods (skips what this machine does not support)
	go -C kubebox test -timeout 20m -p 1 $(TESTFLAGS) ./...
	go -C bench test $(TESTFLAGS) ./...
	go -C e2e test -timeout 20m -p 1 $(TESTFLAGS) ./...

.PHONY: bench
bench: kubernetes ## Measure templating, and the controller against a bare client (see docs/benchmarks.md)
	go test -run=NONE -bench=. -benchmem ./templating
	go -C bench run .

.PHONY: demo
demo: ## Start a Kubernetes cluster with Akri and an example
	@go -C e2e run ./cmd/demo up

.PHONY: demo-down
demo-down: ## Stop the demo and remove everything it created
	@go -C e2e run ./cmd/demo down

.PHONY: generate
generate: ## Generate deep copies, CRDs and the discovery protocol's Go code
	go tool -modfile=tools/go.mod controller-gen object paths=./api/...
	go tool -modfile=tools/go.mod controller-gen crd paths=./api/... output:crd:dir=config/crd
	go -C tools run ./protogen -out ../discovery/protocol ../discovery/protocol/discovery.proto protoc-gen-go protoc-gen-go-grpc

# Runs golangci-lint from tools/lint in the module that -C selects.
LINT := tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint run

.PHONY: verify
verify: generate ## Check formatting, linters, tidiness, and that generated files are current
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted: $$unformatted; run make fix"; exit 1; }
	@for module in $(MODULES) tools/lint; do echo "tidy: $$module"; go -C $$module mod tidy -diff || { echo "run: go -C $$module mod tidy"; exit 1; }; done
	@for module in $(MODULES); do echo "lint: $$module"; go -C $$module $(LINT) || { echo "run make fix to apply automatic fixes"; exit 1; }; done
	@git diff --exit-code --stat -- api config discovery || { echo "generated files are stale: commit the output of make generate"; exit 1; }

.PHONY: fix
fix: ## Format the code, group imports, and apply the linters' fixes
	@for module in $(MODULES); do go -C $$module $(LINT) --fix; done
