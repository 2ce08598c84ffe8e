# "make help" lists the targets.

# Build flags are part of Go's cache keys: use the same ones everywhere.
export GOFLAGS := -trimpath

# Without it, each test binary with the race detector sleeps for a second at its end.
export GORACE := atexit_sleep_ms=100

# Additional flags for go test, such as -race or -run.
TESTFLAGS ?=
# The directories of the Go modules that people work in, and of all.
MODULES := . kubebox e2e bench tools
ALL_MODULES := $(MODULES) tools/lint kubebox/kubernetes kubebox/runtime

FORMAT ?= pkgname
# The gate repeats tests that failed, once, and does not accept results of an earlier run.
RERUN ?=
COUNT ?=
# $(call gotest,DIR,PACKAGES,FLAGS) runs the tests of the module in a directory. Each call
# gives its own time limit for a package, so that a test that hangs is named.
gotest = @mkdir -p bin/tests && go -C $(1) tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format=$(FORMAT) --hide-summary=skipped \
	--jsonfile=$(CURDIR)/bin/tests/$@.json --packages='$(2)' $(RERUN) -- $(3) $(COUNT) $(TESTFLAGS)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/
	CGO_ENABLED=0 go build -ldflags='-s -w' -o bin/ ./cmd/...

.PHONY: kubernetes
kubernetes: ## Build Kubernetes for the tests and the demo into bin/k8s (takes minutes the first time)
	go -C kubebox run ./cmd/cluster build

.PHONY: test unit examples
test: unit examples ## Run the tests that need no node: unit tests and tests against a real API server
unit: kubernetes
	$(call gotest,.,./...,-timeout=10m)
examples:
	CGO_ENABLED=0 go run -ldflags='-s -w' ./cmd/kubectl-akri test examples

.PHONY: e2e e2e-kubebox e2e-bench e2e-akri
e2e: e2e-kubebox e2e-bench e2e-akri ## Run the tests on real nodes: kubelet, containerd, pods (skips what this machine does not support)
e2e-kubebox: kubernetes
	$(call gotest,kubebox,./...,-timeout=20m -p=1)
e2e-bench: kubernetes
	$(call gotest,bench,./...,-timeout=10m)
e2e-akri: kubernetes build # compiles nothing while its cluster runs
	$(call gotest,e2e,./...,-timeout=20m -p=1)

.PHONY: fetch
fetch: ## Download the Go modules that everything else needs
	@for module in $(ALL_MODULES); do \
		for try in 1 2 3; do go -C $$module mod download && continue 2; sleep $$((5 * try)); done; \
		echo "$$module: the modules cannot be downloaded, in three tries"; exit 1; \
	done

# The checks, as stages that tools/gate runs: a mistake that is found quickly is found
# first. A test that cannot run is a failure in them; nodes need root.
STAGES := fetch house lint kubernetes build
gate full: export AKRI_TEST_REQUIRED := 1
gate full: export AKRI_E2E_REQUIRED := $(if $(filter 0,$(shell id -u)),1)
gate full: export COUNT := -count=1
gate full: export RERUN := --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race

.PHONY: gate
gate: ## Check what must hold for every change, as CI does
	@go -C tools build -o ../bin/ ./gate
	@bin/gate -stop-after=fetch,kubernetes,build $(STAGES) 'test TESTFLAGS=-race' e2e

.PHONY: full proofs
full: ## Check what make gate does, and what takes longer: all cases, many schedules, speed as ratios
	@go -C tools build -o ../bin/ ./gate
	@bin/gate -stop-after=fetch,kubernetes,build $(STAGES) 'test TESTFLAGS=-race' 'proofs AKRI_FULL=1' 'e2e AKRI_FULL=1'
proofs: kubernetes # without the race detector: speed is measured, and models run long
	$(call gotest,.,./...,-timeout=40m)

# What is random or heavy, each part for DURATION. SEED determines what can be repeated.
DURATION ?= 10m
SEED := $(or $(SEED),$(shell date +%s))
.PHONY: soak soak-schedules soak-fuzz soak-kills
soak: export AKRI_SOAK := $(DURATION)
soak: export AKRI_SEED := $(SEED)
soak: export FORMAT := standard-verbose
soak: kubernetes build ## Run random and heavy tests, each for DURATION: make soak DURATION=30m SEED=7
	@echo "DURATION=$(DURATION) SEED=$(SEED)"
	@go -C tools build -o ../bin/ ./gate
	@bin/gate soak-schedules soak-fuzz soak-kills
soak-schedules:
	$(call gotest,.,./agent/serve/slots,-timeout=24h -count=1 -run=TestSoak)
soak-fuzz:
	go test -timeout=24h -run=NONE -fuzz=FuzzRender -fuzztime=$(AKRI_SOAK) ./templating
	go test -timeout=24h -run=NONE -fuzz=FuzzCompile -fuzztime=$(AKRI_SOAK) ./templating
soak-kills:
	$(call gotest,e2e,.,-timeout=24h -count=1 -run=TestKilledController)

.PHONY: bench
bench: kubernetes ## Measure templating, and the controller against a bare client (see docs/benchmarks.md)
	go test -timeout=30m -run=NONE -bench=. -benchmem ./templating
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
LINT := tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint run --output.text.print-issued-lines=false --show-stats=false

.PHONY: verify house format generated tidy rules test-tools lint
verify: house lint ## Check formatting, generated files, tidiness and house rules, and run the linters
house: format generated tidy rules test-tools
format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted:" $$unformatted"; run make fix"; exit 1; }
generated: generate
	@git diff --exit-code --stat -- api config discovery || { echo "generated files are stale: commit the output of make generate"; exit 1; }
TIDY := $(addprefix tidy-,$(MODULES) tools/lint)
LINTS := $(addprefix lint-,$(MODULES))
.PHONY: $(TIDY) $(LINTS)
tidy: $(TIDY)
$(TIDY): tidy-%:
	@go -C $* mod tidy -diff || { echo "run: go -C $* mod tidy"; exit 1; }
rules:
	$(call gotest,.,.,-timeout=5m)
test-tools:
	$(call gotest,tools,./...,-timeout=5m)
lint: $(LINTS)
$(LINTS): lint-%:
	@echo "lint: $*"; go -C $* $(LINT) || { echo "run make fix to apply automatic fixes"; exit 1; }

.PHONY: fix
fix: ## Format the code, group imports, and apply the linters' fixes
	@for module in $(MODULES); do go -C $$module $(LINT) --fix; done
