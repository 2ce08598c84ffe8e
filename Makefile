# "make help" lists the targets.

# Build flags are part of Go's cache keys: use the same ones everywhere. Without debug
# information, the compiler has an eighth less to do; stack traces and profiles do not
# need it, and debuggers compile with flags of their own.
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false

# Other versions of Kubernetes than the pinned one (see docs/kubernetes-versions.md):
# KUBERNETES=v1.36.3 make e2e, and with older nodes KUBELET=v1.34.4 make e2e.
export AKRI_KUBERNETES := $(KUBERNETES)
export AKRI_KUBELET := $(KUBELET)
ifneq ($(KUBERNETES)$(KUBELET),)
export AKRI_TEST_ASSETS := $(CURDIR)/bin/k8s$(KUBERNETES:%=-%)$(KUBELET:%=-kubelet-%)
endif

# Additional flags for go test, such as -race or -run.
TESTFLAGS ?=
# The directories of the Go modules that people work in.
MODULES := . kubebox release charts e2e bench tools

# The version of everything that is built: the tag, or the tag before and the number of
# commits since then. Without any tag it is v0.0.0-g and the commit.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || \
	echo v0.0.0-$$(git describe --always --dirty --exclude '*' 2>/dev/null | sed 's/^/g/' | grep . || echo unknown))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/
	CGO_ENABLED=0 go build -ldflags='-s -w -X akri.sh/akri/internal/version.version=$(VERSION) -X akri.sh/akri/internal/version.commit=$(REVISION)' -o bin/ ./cmd/...

.PHONY: version
version: ## Print the version of this checkout
	@echo $(VERSION)

# The commit that is built, its time in seconds since 1970, and the URL of the repository:
# labels of the images.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
SOURCE ?=
IMAGES := go -C release run ./cmd/images
IMAGE_FLAGS = --version=$(VERSION) --revision=$(REVISION) --created=$(or $(SOURCE_DATE_EPOCH),0) --source=$(SOURCE)

.PHONY: images
images: ## Build the container images for all platforms as OCI layouts into bin/images
	$(IMAGES) build $(IMAGE_FLAGS)

.PHONY: push
push: images ## Publish the images: make push REGISTRY=registry.example.com/akri
	$(IMAGES) push --registry=$(REGISTRY) $(PUSH_FLAGS)

.PHONY: load
load: ## Write image archives for the nodes' containerd, or load them: make load CLUSTER=/tmp/akri-demo
	$(IMAGES) archive $(IMAGE_FLAGS) $(if $(PLATFORM),--platform=$(PLATFORM)) $(if $(CLUSTER),--cluster=$(CLUSTER))

.PHONY: packages
packages: ## Make packages and archives of the command line programs in bin/packages (DOWNLOADS=URL for krew)
	go -C release run ./cmd/packages --version=$(VERSION) --revision=$(REVISION) --created=$(or $(SOURCE_DATE_EPOCH),0) --source=$(SOURCE) --downloads=$(DOWNLOADS)

.PHONY: kubernetes
kubernetes: ## Build Kubernetes for the tests and the demo into bin/k8s (takes minutes the first time)
	go -C kubebox run ./cmd/cluster build

.PHONY: test
test: kubernetes ## Run the tests that need no node: unit tests and tests against a real API server
	go test -timeout 20m $(TESTFLAGS) ./...
	go -C charts test ./...
	go run ./cmd/kubectl-akri test examples

.PHONY: e2e
e2e: kubernetes ## Run the tests on real nodes: kubelet, containerd, pods (skips what this machine does not support)
	go -C kubebox test -timeout 20m -p 1 $(TESTFLAGS) ./...
	go -C bench test $(TESTFLAGS) ./...
	go -C release test -timeout 20m $(TESTFLAGS) ./...
	go -C e2e test -timeout 20m -p 1 $(TESTFLAGS) ./...

.PHONY: bench
bench: kubernetes ## Measure templating, the controller and agents (see docs/benchmarks.md)
	go test -run=NONE -bench=. -benchmem ./templating
	go -C bench run .

# The options of the demo in a cluster that exists: CLUSTER=current, REGISTRY=HOST/PATH, YES=1.
DEMO = run ./cmd/demo $(if $(CLUSTER),--cluster=$(CLUSTER) $(if $(REGISTRY),--registry=$(REGISTRY)) $(if $(YES),--yes))

.PHONY: demo
demo: ## Start a Kubernetes cluster with Akri and virtual cameras; CLUSTER=current: use yours, after asking
	@go -C e2e $(DEMO) up

.PHONY: demo-down
demo-down: ## Stop the demo and remove everything it created; CLUSTER=current: from your cluster
	@go -C e2e $(DEMO) down

.PHONY: generate
generate: ## Generate deep copies, CRDs, the protocol's Go code, the chart, dashboards and docs/reference
	go tool -modfile=tools/go.mod controller-gen object paths=./api/...
	go tool -modfile=tools/go.mod controller-gen crd paths=./api/... output:crd:dir=config/crd
	go -C tools run ./protogen -out ../discovery/protocol ../discovery/protocol/discovery.proto protoc-gen-go protoc-gen-go-grpc
	go -C tools run ./dashboards -out ../config/monitoring/dashboards
	go -C charts run ./generate
	go tool -modfile=tools/go.mod crd-ref-docs --log-level=ERROR --source-path=api/v0 --config=docs/reference/api.yaml --renderer=markdown --output-path=docs/reference/api.md
	go -C tools run ./reference -root .. -out ../docs/reference

# Runs golangci-lint from tools/lint in the module that -C selects.
LINT := tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint run

.PHONY: chart
chart: ## Package the Helm chart with VERSION into bin/
	go -C charts run ./cmd/chart -version '$(VERSION)' -out ../bin

.PHONY: verify
verify: generate ## Check formatting, linters, tidiness, and that generated files are current
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted: $$unformatted; run make fix"; exit 1; }
	@for module in $(MODULES) tools/lint; do echo "tidy: $$module"; go -C $$module mod tidy -diff || { echo "run: go -C $$module mod tidy"; exit 1; }; done
	@for module in $(MODULES); do echo "lint: $$module"; go -C $$module $(LINT) || { echo "run make fix to apply automatic fixes"; exit 1; }; done
	@echo "workflows"; go tool -modfile=tools/go.mod actionlint
	@git diff --exit-code --stat -- api charts config discovery docs/reference || { echo "generated files are stale: commit the output of make generate"; exit 1; }

.PHONY: fix
fix: ## Format the code, group imports, and apply the linters' fixes
	@for module in $(MODULES); do go -C $$module $(LINT) --fix; done

# Publishes the images, and prints each with its digest. To publish again changes nothing.
PUBLISH_IMAGES = $(IMAGES) push --registry=$(REGISTRY) $(PUSH_FLAGS)
# The files of a release: what make packages and make chart have written.
RELEASE_FILES = $(wildcard bin/packages/* bin/*.tgz)

.PHONY: release-notes
release-notes: ## Write the section of CHANGELOG.md on VERSION into bin/release/notes.md
	@mkdir -p bin/release
	@awk -v heading='## [$(VERSION:v%=%)]' 'index($$0, "## ") == 1 { here = index($$0, heading) == 1 } here { print; found = 1 } \
		END { exit !found }' CHANGELOG.md > bin/release/notes.md || \
		{ echo "CHANGELOG.md: there is no section [$(VERSION:v%=%)]: rename Unreleased"; exit 1; }

.PHONY: checksums
checksums: ## Write the digests of the published images, packages and the chart into bin/release/SHA256SUMS
	@mkdir -p bin/release
	@$(PUBLISH_IMAGES) | sed -n 's/^\(.*\)@sha256:\(.*\)$$/\2  \1/p' > bin/release/SHA256SUMS
	@for file in $(RELEASE_FILES); do (cd $$(dirname $$file) && sha256sum $$(basename $$file)); done >> bin/release/SHA256SUMS

.PHONY: sign
sign: ## Sign the published images and SHA256SUMS with cosign, without keys
	$(PUBLISH_IMAGES) | xargs cosign sign --yes
	cosign sign-blob --yes --bundle bin/release/SHA256SUMS.sigstore.json bin/release/SHA256SUMS

.PHONY: publish
publish: ## Create the release on GitHub, with the packages, the chart and their digests
	gh release create $(VERSION) --verify-tag --title $(VERSION) --notes-file bin/release/notes.md \
		$(RELEASE_FILES) bin/release/SHA256SUMS bin/release/SHA256SUMS.sigstore.json
