# The race detector needs cgo and a C compiler. Without one the tests still
# mean something, so they run, and say what they leave out.
RACE  = $(shell go list -race errors >/dev/null 2>&1 && echo -race)
# Most tests wait, for servers and for time to pass, and more of them may do so
# at once than there are processors.
TESTS ?= -timeout=8m -parallel=8
# Of which packages; work are all of all modules.
PACKAGES ?= work
BENCH ?=
TORTURE ?=

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

.PHONY: demo
demo: ## watch a flash sale oversell without locks, and not with them
	go run ./ext/cmd/holdfast demo

.PHONY: test
test: ## run every test of all modules under the race detector
	@scripts/servers
	@$(if $(RACE),,echo 'no C compiler: the tests run without the race detector' >&2)
	go test $(RACE) $(TESTS) $(PACKAGES)

.PHONY: lint
lint: ## run the static checks: format, vet for every system, staticcheck
	scripts/lint

.PHONY: check
check: lint test ## run all that a change must pass

.PHONY: bench
bench: ## measure it beside what others use, in 25 minutes; BENCH=-short takes five, BENCH=-save=docs publishes
	@scripts/servers
	go run ./ext/bench $(BENCH)

.PHONY: torture
torture: ## put every store to the proof with every fault, in an hour or so; TORTURE=-save=docs publishes
	@scripts/servers
	go run ./ext/cmd/holdfast/internal/torture $(TORTURE)

.PHONY: mutants
mutants: ## break it in many ways, and let verify find each; MUTANTS=-run=NAME tries some
	@scripts/servers
	go run ./ext/cmd/holdfast/internal/mutants $(MUTANTS)

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME, 10s unless set
	scripts/fuzz
