# The race detector needs cgo and a C compiler. Without one the tests still
# mean something, so they run, and say what they leave out.
RACE  = $(shell go list -race errors >/dev/null 2>&1 && echo -race)
# A program with the race detector sleeps for a second before it ends, so that goroutines
# that still run report theirs. Over a minute of all tests would be that.
export GORACE ?= atexit_sleep_ms=50
# make lint vets all modules, and checks more than go test would.
FLAGS = $(RACE) -vet=off
# Most tests wait, for servers and for time to pass, and more of them may do so
# at once than there are processors. The timeout only ends tests that hang.
TESTS ?= -timeout=20m -p=4 -parallel=8
# Of which packages; work are all of all modules.
PACKAGES ?= work
# Who runs the tests: go test, or what tells more of them, as scripts/slow.
GOTEST ?= go test
BENCH ?=
DEMO  ?=
TORTURE ?=
REHEARSAL ?=
FOR ?= 10m
REPLAY ?=
MATRIX ?=
SIM ?=
SEED ?=
VERSION ?=
RELEASE ?=

# A new seed each time, so that go test does not take random tests from its cache.
test long: export HOLDFAST_TEST_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

.PHONY: demo
demo: ## watch a flash sale oversell without locks, and not with them; DEMO=-pause freezes a server too
	GOWORK=off go run ./internal/demo/flashsale $(DEMO)

.PHONY: test
test: ## run what a change must pass: all modules, real servers, race detector; prints what is not proved
	@scripts/servers
	@$(if $(RACE),,echo 'no C compiler: the tests run without the race detector' >&2)
	scripts/unproved $(GOTEST) $(FLAGS) -short $(TESTS) $(PACKAGES)

.PHONY: slow
slow: ## run the tests of make test, and show what takes most processor time, and longest
	scripts/slow

.PHONY: prove
prove: rehearsal long beside mutants torture ## run all that takes long: releases, long tests, the last release, mutants, every store with every fault

.PHONY: long
long: ## run every test, also those that make test leaves out
	@scripts/servers
	scripts/unproved $(GOTEST) $(FLAGS) $(TESTS) -p=2 $(PACKAGES)

.PHONY: lint
lint: ## run the static checks: format, vet for every system, staticcheck
	scripts/lint

.PHONY: check
check: lint test ## run all that a change must pass

.PHONY: bench
bench: ## measure it beside what others use, in an hour; BENCH=-short takes ten, BENCH=-save=docs/results publishes
	@scripts/servers
	go run ./bench $(BENCH)

.PHONY: torture
torture: ## put every store to the proof with every fault, in an hour and a half; TORTURE=-save=docs/results publishes
	@scripts/servers
	go run ./cmd/holdfast-verify/internal/torture $(TORTURE)

.PHONY: sim
sim: ## run new seeds of the simulator for FOR=10m, and count what happened; SIM=-save=docs/results/simulator.md publishes
	go run ./internal/sim/tally $(RACE) -for=$(FOR) $(SIM)

.PHONY: replay
replay: ## run a seed of the simulator exactly, and show what happened; SEED=42, REPLAY=-test=TestRedlock
	go run ./internal/sim/replay $(REPLAY) $(SEED)

.PHONY: mutants
mutants: ## break it in many ways, and let the simulator or verify find each; MUTANTS=-run=NAME tries some, MUTANTS=-save=docs/results publishes
	@scripts/servers
	go run ./cmd/holdfast-verify/internal/mutants $(MUTANTS)

.PHONY: rehearsal
rehearsal: ## get, build and run every module as users will; REHEARSAL=-save=docs/results/rehearsal.md publishes
	@scripts/servers
	cd internal/release && go test -count=1 -timeout=15m -args -rehearse $(REHEARSAL)

.PHONY: release
release: ## check, commit, archive and tag VERSION=v0.1.0, see CONTRIBUTING.md
	go run ./internal/release $(VERSION)

.PHONY: matrix
matrix: ## run every store on older and newer servers, in half an hour; MATRIX=-save=docs/results/matrix.md publishes
	go run ./internal/matrix $(MATRIX)

.PHONY: beside
beside: ## let the last release, or RELEASE=v0.1.0, and this tree share every store, with faults
	@scripts/servers
	scripts/beside $(RELEASE)

.PHONY: lines
lines: ## count lines of Go by folder
	@scripts/lines

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME, 10s unless set
	scripts/fuzz
