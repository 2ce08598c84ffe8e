# "make help" lists the targets.

# Build flags are part of Go's cache keys: use the same ones everywhere. Without debug
# information, the compiler has an eighth less to do; stack traces and profiles do not
# need it, and debuggers compile with flags of their own.
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false
# For the same reason, everything is compiled without C, as the programs in the images are:
# with it, the packages that depend on net would be compiled twice.
export CGO_ENABLED := 0

# Other versions of Kubernetes than the pinned one (see docs/kubernetes-versions.md):
# KUBERNETES=v1.36.3 make e2e, and with older nodes KUBELET=v1.34.4 make e2e.
export AKRI_KUBERNETES := $(KUBERNETES)
export AKRI_KUBELET := $(KUBELET)
ifneq ($(KUBERNETES)$(KUBELET),)
export AKRI_TEST_ASSETS := $(CURDIR)/bin/k8s$(KUBERNETES:%=-%)$(KUBELET:%=-kubelet-%)
endif

# Without it, each test binary with the race detector sleeps for a second at its end.
export GORACE := atexit_sleep_ms=100

# Additional flags for go test, such as -race or -run.
TESTFLAGS ?=
# The directories of the Go modules that people work in, and of all.
MODULES := . kubebox release charts e2e bench tools
ALL_MODULES := $(MODULES) tools/lint kubebox/kubernetes kubebox/runtime

FORMAT ?= pkgname
# Set by the gate, which repeats tests that failed, once, and does not accept results of an earlier run.
RERUN ?=
COUNT ?=
# $(call gotest,DIR,PACKAGES,FLAGS) runs the tests of the module in a directory. Each call
# gives its own time limit for a package, so that a test that hangs is named. The race
# detector needs C.
gotest = @mkdir -p bin/tests && CGO_ENABLED=$(if $(findstring -race,$(TESTFLAGS)),1,0) go -C $(1) tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format=$(FORMAT) --hide-summary=skipped \
	--jsonfile=$(CURDIR)/bin/tests/$@$(KUBERNETES:%=-%)$(KUBELET:%=-kubelet-%).json --packages="$(2)" $(RERUN) -- $(3) $(COUNT) $(TESTFLAGS)

# The version of everything that is built: the tag, or the tag before and the number of
# commits since then. Without any tag it is v0.0.0-g and the commit.
# It is evaluated once, so that make push chart makes one version even if a commit comes in between.
VERSION := $(or $(VERSION),$(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || \
	echo v0.0.0-$$(git describe --always --dirty --exclude '*' 2>/dev/null | sed 's/^/g/' | grep . || echo unknown)))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without the pages of gRPC's traces, which nothing serves, the programs do not link Go's
# templates, whose reflection would keep each method of each type: 2.5 MB of the RSS of each agent.
TAGS := grpcnotrace

.PHONY: build
build: ## Build the programs into bin/
	go build -tags=$(TAGS) -ldflags='-s -w -X akri.sh/akri/internal/version.version=$(VERSION) -X akri.sh/akri/internal/version.commit=$(REVISION)' -o bin/ ./cmd/...

.PHONY: version
version: ## Print the version of this checkout
	@echo $(VERSION)

# The commit that is built, its time in seconds since 1970, and the URL of the repository:
# labels of the images.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
SOURCE ?=
IMAGES := go -C release run ./cmd/images
# Publishes the images, and prints each with its digest. To publish again changes nothing.
PUBLISH_IMAGES = $(IMAGES) push --registry=$(REGISTRY) $(PUSH_FLAGS)
IMAGE_FLAGS = --version=$(VERSION) --revision=$(REVISION) --created=$(or $(SOURCE_DATE_EPOCH),0) --source=$(SOURCE)

.PHONY: images
images: ## Build the container images as OCI layouts into bin/images, for PLATFORM=linux/amd64,… or all
	$(IMAGES) build $(IMAGE_FLAGS) $(if $(PLATFORM),--platform=$(PLATFORM))

.PHONY: push
push: images ## Publish the images: make push REGISTRY=registry.example.com/akri PLATFORM=linux/amd64
	$(PUBLISH_IMAGES)

.PHONY: load
load: ## Write image archives for the nodes' containerd, or load them: make load CLUSTER=/tmp/akri-demo
	$(IMAGES) archive $(IMAGE_FLAGS) $(if $(PLATFORM),--platform=$(PLATFORM)) $(if $(CLUSTER),--cluster=$(CLUSTER))

# The images of an example, as make push has published them.
EXAMPLE_IMAGES = s|akri.sh/\(examples/[a-z-]*\):dev|$(or $(REGISTRY),akri.sh)/\1:$(VERSION)|
.PHONY: example
example: ## Print an example with your images: make -s example NAME=opcua REGISTRY=registry.example.com/akri | kubectl apply -f -
	@ls examples/$(NAME)/configuration.yaml >/dev/null
	@sed -n 's|^  namespace: \(.*\)|---\napiVersion: v1\nkind: Namespace\nmetadata: {name: \1}|p' examples/$(NAME)/configuration.yaml
	@for file in $(filter-out %/expected.yaml %/instances.yaml %/configuration.yaml,$(wildcard examples/$(NAME)/*.yaml)) examples/$(NAME)/configuration.yaml; do \
		echo ---; sed '$(EXAMPLE_IMAGES)' $$file; \
	done

.PHONY: packages
packages: ## Make packages and archives of the command line programs in bin/packages (DOWNLOADS=URL for krew)
	go -C release run ./cmd/packages --version=$(VERSION) --revision=$(REVISION) --created=$(or $(SOURCE_DATE_EPOCH),0) --source=$(SOURCE) --downloads=$(DOWNLOADS)

.PHONY: kubernetes
kubernetes: ## Build Kubernetes for the tests and the demo into bin/k8s (takes minutes the first time)
	go -C kubebox run ./cmd/cluster build

.PHONY: test test-racing test-others test-charts test-release test-bench examples
test: test-racing test-others test-charts test-release test-bench examples ## Run the tests that need no node: unit tests and tests against a real API server
# The gate gives -race only to the first part: the race detector doubles the time of the
# others, which compute in one goroutine or mostly wait for an API server, and of a library.
# Make full gives it to both. The packages that take longest come first.
OTHERS := ^akri.sh/akri/(controller|templating(/.*)?|api/.*|cmd/.*|agent/serve/slots|discovery/opcua)$$
test-racing: override TESTFLAGS += $(RACE)
test-racing: kubernetes
	$(call gotest,.,./webhook ./agent/serve/deviceplugin $$(go list ./... | grep -vE '$(OTHERS)'),-timeout=10m -p=3)
test-others: kubernetes
	$(call gotest,.,./controller ./templating $$(go list ./... | grep -E '$(OTHERS)'),-timeout=10m -p=2)
# Without the race detector, with which Helm takes four times as long: the chart has no goroutines.
test-charts: override TESTFLAGS :=
test-charts: kubernetes
	$(call gotest,charts,./...,-timeout=20m)
test-release: kubernetes
	$(call gotest,release,./...,-timeout=20m)
test-bench: kubernetes
	$(call gotest,bench,./...,-timeout=10m)
examples:
	go run -ldflags='-s -w' ./cmd/kubectl-akri test examples

.PHONY: e2e e2e-slots kubebox
# Compiles nothing while its clusters run: the tests only link these.
e2e: kubernetes build ## Run the tests on real nodes: kubelet, containerd, pods (skips what this machine does not support)
	@go build ./examples/...
	$(call gotest,e2e,./...,-timeout=20m -p=3 -parallel=4)
kubebox: kubernetes ## Test the clusters themselves, on which the tests run
	$(call gotest,kubebox,./...,-timeout=20m -p=1)

# With what takes longer: older kubelets release slots in another way.
e2e-slots: export AKRI_FULL := 1
e2e-slots: kubernetes build
	$(call gotest,e2e,./slots ./takeover,-timeout=60m -p=1)

# What make versions runs: the rows of docs/kubernetes-versions.md but for the pinned version.
VERSIONS ?= KUBERNETES=v1.36.3 KUBERNETES=v1.35.4 KUBERNETES=v1.34.4 KUBELET=v1.34.4
.PHONY: versions
versions: ## Run Akri's tests on real nodes with the older versions of Kubernetes that it supports: hours
	@$(GATE) $(foreach version,$(VERSIONS),'e2e $(version)' 'e2e-slots $(version)')

.PHONY: fetch
fetch: ## Download the Go modules that everything else needs, and Debian's list of packages
	@if command -v apt-get && ! apt-cache show nftables prometheus qemu-user-static chromium-headless-shell; then apt-get update; fi >/dev/null 2>&1
	@for module in $(ALL_MODULES); do \
		for try in 1 2 3; do go -C $$module mod download && continue 2; sleep $$((5 * try)); done; \
		echo "$$module: the modules cannot be downloaded, in three tries"; exit 1; \
	done

# tools/gate runs stages and says last what failed. A mistake that is found quickly is found
# first. A test that cannot run is a failure in them; nodes need root.
GATE = go -C tools build -o ../bin/ ./gate && bin/gate
STAGES := fetch house '-j2 lint' kubernetes build
gate full versions soak: export AKRI_TEST_REQUIRED := 1
gate full versions soak: export AKRI_E2E_REQUIRED := $(if $(filter 0,$(shell id -u)),1)
gate full versions: export COUNT := -count=1
gate full versions: export RERUN := --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race

.PHONY: gate
gate: ## Check what must hold for every change, as CI does
	@$(GATE) $(STAGES) '-j2 test RACE=-race' e2e

.PHONY: full proofs
full: ## Check what make gate does, and what takes longer: all cases, many schedules, speed as ratios
	@$(GATE) $(STAGES) '-j2 test TESTFLAGS=-race' kubebox 'proofs AKRI_FULL=1' 'e2e AKRI_FULL=1'
# The date of the commit is the seed of the schedules that are new for each commit.
proofs: export AKRI_SEED ?= $(shell git log -1 --format=%ct)
proofs: kubernetes # without the race detector: speed is measured, and models run long
	$(call gotest,.,./...,-timeout=40m)

# What is random or heavy, each part for DURATION. SEED determines what can be repeated.
DURATION ?= 10m
SEED := $(or $(SEED),$(shell date +%s))
FUZZERS := templating:FuzzRender templating:FuzzCompile discovery/udev/details:FuzzParseRule discovery/onvif/wsdiscovery:FuzzParse \
	discovery/onvif/soap:FuzzChallenge discovery/opcua/uatcp:FuzzConnection discovery/mdns/browse:FuzzMachine
.PHONY: soak soak-schedules soak-fuzz soak-kills soak-churn soak-tenant soak-hostile soak-handlers
soak: export AKRI_SOAK := $(DURATION)
soak: export AKRI_SEED := $(SEED)
soak: export FORMAT := standard-verbose
soak: kubernetes build ## Run random and heavy tests, each for DURATION: make soak DURATION=30m SEED=7
	@echo "DURATION=$(DURATION) SEED=$(SEED)"
	@$(GATE) soak-schedules soak-fuzz soak-kills soak-churn soak-tenant soak-hostile soak-handlers
soak-schedules:
	$(call gotest,.,./agent/serve/slots,-timeout=24h -count=1 -run=TestSoak)
soak-fuzz:
	@for fuzzer in $(FUZZERS); do echo "$$fuzzer" && \
		go test -timeout=24h -run=NONE -fuzz="^$${fuzzer#*:}\$$" -fuzztime=$(AKRI_SOAK) ./$${fuzzer%:*} || exit 1; done
soak-kills:
	$(call gotest,e2e,.,-timeout=24h -count=1 -run=TestKilledController)
soak-churn soak-tenant soak-hostile soak-handlers: export AKRI_FULL := 1
soak-churn:
	$(call gotest,e2e,./slots,-timeout=24h -count=1 -run='TestChurn|TestFlappingDevices')
soak-tenant:
	$(call gotest,e2e,./attacks,-timeout=24h -count=1 -run=TestTenant)
soak-hostile: export AKRI_TEST_HOSTILE = $(AKRI_SOAK)
soak-hostile:
	$(call gotest,.,./webhook,-timeout=24h -count=1 -run=TestHostileUser)
soak-handlers:
	$(call gotest,e2e,./handlers,-timeout=24h -count=1 -run='TestONVIFLoss|TestMDNSPacketLoss')

.PHONY: bench
bench: kubernetes ## Measure templating, the controller and an agent (see docs/benchmarks.md)
	go test -timeout=30m -run=NONE -bench=. -benchmem ./templating
	go -C bench run .

# The options of the demo: DIR=PATH for its own cluster; CLUSTER=current, REGISTRY=HOST/PATH, YES=1 for one that exists.
DEMO = run ./cmd/demo $(if $(DIR),--dir=$(abspath $(DIR))) $(if $(CLUSTER),--cluster=$(CLUSTER) $(if $(REGISTRY),--registry=$(REGISTRY)) $(if $(YES),--yes))

.PHONY: demo
demo: ## Start a Kubernetes cluster with Akri and virtual cameras; CLUSTER=current: use yours, after asking
	@go -C e2e $(DEMO) up

.PHONY: demo-down
demo-down: ## Stop the demo and remove everything it created; CLUSTER=current: from your cluster
	@go -C e2e $(DEMO) down

.PHONY: generate
generate: ## Generate deep copies, CRDs, the protocols' Go code, the chart and docs/reference
	go tool -modfile=tools/go.mod controller-gen object paths=./api/...
	go tool -modfile=tools/go.mod controller-gen crd paths=./api/... output:crd:dir=config/crd
	go -C tools run ./protogen -out ../discovery/protocol ../discovery/protocol/discovery.proto protoc-gen-go protoc-gen-go-grpc
	go -C tools run ./protogen -out ../discovery/mqtt/sparkplug ../discovery/mqtt/sparkplug/sparkplug.proto protoc-gen-go
	go -C charts run ./generate
	go tool -modfile=tools/go.mod crd-ref-docs --log-level=ERROR --source-path=api/v0 --config=docs/reference/api.yaml --renderer=markdown --output-path=docs/reference/api.md
	@$(MAKE) --no-print-directory build
	go -C tools run ./reference -bin ../bin -out ../docs/reference

# Runs golangci-lint from tools/lint in the module that -C selects.
LINT := tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint run --allow-parallel-runners --output.text.print-issued-lines=false --show-stats=false

CHART = go -C charts run ./cmd/chart -version='$(VERSION)' -registry='$(REGISTRY)' -source='$(SOURCE)' -out=../bin
# Publishes the chart, and prints it with its digest. To publish again changes nothing.
PUBLISH_CHART = $(CHART) -push $(PUSH_FLAGS)

.PHONY: chart
chart: ## Package the Helm chart with VERSION into bin/, for images in REGISTRY
	$(CHART)

.PHONY: manifests
manifests: ## Write what installs Akri without Helm, a file for each handler, into bin/install-*.yaml, for images in REGISTRY
	@$(CHART) -manifests=../config

.PHONY: push-chart
push-chart: ## Publish the Helm chart next to the images: make push-chart REGISTRY=registry.example.com/akri
	$(PUBLISH_CHART)

.PHONY: house format generated workflows tidy rules test-tools lint
house: format generated workflows tidy rules test-tools ## Check formatting, generated files, tidiness and the house rules
format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted:" $$unformatted"; run make fix"; exit 1; }
generated: generate
	@git diff --exit-code --stat -- api charts config discovery docs/reference || { echo "generated files are stale: commit the output of make generate"; exit 1; }
workflows:
	go tool -modfile=tools/go.mod actionlint
TIDY := $(addprefix tidy-,$(MODULES) tools/lint)
LINTS := $(addprefix lint-,$(MODULES))
.PHONY: $(TIDY) $(LINTS)
tidy: $(TIDY)
$(TIDY): tidy-%:
	@go -C $* mod tidy -diff || { echo "run: go -C $* mod tidy"; exit 1; }
rules:
	$(call gotest,.,./internal/house,-timeout=5m)
test-tools:
	$(call gotest,tools,./...,-timeout=5m)
lint: $(LINTS) ## Run the linters in all modules
$(LINTS): lint-%:
	@echo "lint: $*"; go -C $* $(LINT) || { echo "run make fix to apply automatic fixes"; exit 1; }

.PHONY: fix
fix: ## Format the code, group imports, and apply the linters' fixes
	@for module in $(MODULES); do go -C $$module $(LINT) --fix; done

# The files of a release: what make packages, make chart and make manifests have written for VERSION.
RELEASE_FILES = $(wildcard bin/packages/*) bin/akri-$(VERSION:v%=%).tgz $(wildcard bin/install-*.yaml)

# A release candidate, such as v1.2.3-rc.1, does not become the latest release.
PRERELEASE = $(if $(findstring -,$(VERSION)),--prerelease --latest=false)

.PHONY: release-notes
release-notes: ## Write the section of CHANGELOG.md on VERSION into bin/release/notes.md
	@mkdir -p bin/release
	@awk -v heading='## [$(VERSION:v%=%)]' 'index($$0, "## ") == 1 { here = index($$0, heading) == 1 } here { print; found = 1 } \
		END { exit !found }' CHANGELOG.md > bin/release/notes.md || \
		{ echo "CHANGELOG.md: there is no section [$(VERSION:v%=%)]: rename Unreleased"; exit 1; }

.PHONY: checksums
checksums: ## Write the digests of the published images and chart, and of the files, into bin/release/SHA256SUMS
	@mkdir -p bin/release
	@{ $(PUBLISH_IMAGES) && $(PUBLISH_CHART); } > bin/release/published
	@sed -n 's/^\(.*\)@sha256:\(.*\)$$/\2  \1/p' bin/release/published > bin/release/SHA256SUMS
	@for file in $(RELEASE_FILES); do (cd $$(dirname $$file) && sha256sum $$(basename $$file)); done >> bin/release/SHA256SUMS

.PHONY: sign
sign: ## Sign the published images and chart, and SHA256SUMS, with cosign, without keys
	xargs cosign sign --yes < bin/release/published
	cosign sign-blob --yes --bundle bin/release/SHA256SUMS.sigstore.json bin/release/SHA256SUMS

.PHONY: publish
publish: ## Create the release on GitHub, with the packages, the chart and their digests
	gh release create $(VERSION) --verify-tag $(PRERELEASE) --title $(VERSION) --notes-file bin/release/notes.md \
		$(RELEASE_FILES) bin/release/SHA256SUMS bin/release/SHA256SUMS.sigstore.json
