# SPDX-License-Identifier: Apache-2.0
"""Gives each page of the site its place in the navigation and its search words.

The pages are written for readers of the repository, where such directives would be shown as text.
docs/index.md lists the pages that the navigation always shows.
"""

from pathlib import Path

# The page that `make playground` builds: it is in the site where Emscripten is installed.
PLAYGROUND = Path(__file__).resolve().parents[1] / "build" / "playground" / "site"
OPEN_PLAYGROUND = """
```{button-link} playground/index.html
:color: primary
Open the playground
```
"""
NO_PLAYGROUND = """
```{note}
This site was built without the playground, because Emscripten was not installed.
```
"""

# Pages that the navigation shows below another page, when that page is open.
BELOW = {
    "ten_minutes": ("notebooks/*",),
    "how_to/migrate": ("migrate_from_*",),
    "learn/devices": ("../how_to/device_manager", "../how_to/memory_kinds", "../how_to/cuda", "../how_to/pjrt"),
    "learn/placing_and_moving": ("../how_to/layouts", "../how_to/share_data", "../how_to/pickle_threads_and_forks"),
    "how_to/test_your_code": ("test_with_pytest", "test_gpu_code", "test_multihost_code", "audit_in_ci"),
    "learn/debugging": ("../how_to/audit_a_jax_program", "../how_to/audit_a_torch_program"),
    "how_to/when_a_job_hangs": ("read_a_timeline",),
    "learn/checkpoints": ("../how_to/convert_a_checkpoint", "../how_to/checkpoint_rules"),
    "learn/input": ("batches", "../how_to/torch_and_grain"),
    "learn/batch_size": ("roofline",),
    "learn/planning": (
        "../how_to/plan_reshards",
        "../how_to/plan_a_step",
        "../how_to/plan_a_server",
        "../how_to/plan_for_failures",
        "../how_to/describe_a_cluster",
        "../how_to/model_shapes",
        "../how_to/calibrate",
    ),
    "how_to/command_line": ("configuration",),
    "performance": ("performance_rows", "planner_accuracy", "reliability", "compared"),
    "formats/README": ("checkpoint", "other_checkpoints", "command_line", "flight_record"),
    "contributing": (
        "contributing/commands",
        "contributing/which_file",
        "contributing/walks",
        "contributing/rooms",
        "contributing/rules",
        "decisions/README",
        "changelog",
        "security",
    ),
    "decisions/README": ("0*",),
}

# Words that people type into the search, by the page that answers them. Sphinx finds index entries first.
WORDS = {
    "faq": ("gpu",),
    "how_to/audit_a_jax_program": ("hlo", "xla", "audit", "rematerialization"),
    "how_to/audit_a_torch_program": ("commdebugmode", "fx graph"),
    "how_to/audit_in_ci": ("golden", "ci"),
    "how_to/cuda": ("cuda", "cupy"),
    "how_to/choose_a_sharding": ("which sharding", "tensor parallel"),
    "how_to/migrate_from_dtensor": ("torch", "dtensor"),
    "how_to/migrate_from_jax": ("jax",),
    "how_to/migrate_from_mpi": ("mpi4py",),
    "how_to/plan_a_training_run": ("pipeline", "zero", "fsdp"),
    "how_to/test_with_pytest": ("pytest", "fixture"),
    "how_to/test_your_code": ("simulate", "test"),
    "how_to/when_a_job_hangs": ("hang", "deadlock", "timeout"),
    "install": ("install", "pip", "wheel"),
    "playground": ("playground", "wasm"),
    "how_to/torch_and_grain": ("dataloader", "grain", "sampler"),
    "learn/batches": ("prefetch", "data loader"),
    "learn/input": ("shuffle", "dataset", "packing", "mix"),
    "learn/batch_size": ("batch size",),
    "learn/checkpoints": ("checkpoint", "save", "restore", "resume"),
    "how_to/convert_a_checkpoint": ("convert", "safetensors", "rename"),
    "learn/debugging": ("oom", "out of memory", "memory limit", "debug"),
    "learn/devices": ("how many devices", "number of devices", "device count"),
    "learn/meshes": ("mesh",),
    "learn/numpy": ("numpy", "ufunc"),
    "learn/placing_and_moving": ("gather", "device_put", "reshard"),
    "learn/processes": ("mpi", "multihost", "processes"),
    "learn/shard_map": ("psum", "all_gather", "ppermute", "collective", "shard_map"),
    "learn/specs": ("partitionspec", "namedsharding", "sharding"),
    "learn/trees": ("pytree", "tree"),
}

# Pages for developers of the library, and names of measurements: a search of the site does not look into them.
NOT_SEARCHED = ("contributing", "decisions/", "changelog", "security", "performance_rows")


def additions(page: str) -> tuple[str, str]:
    """Returns the MyST text that a page gets below its title, and the text that it gets at its end."""
    words = ", ".join(f"! {word}" for word in WORDS.get(page, ()))
    below = "\n".join(BELOW.get(page, ()))
    playground = OPEN_PLAYGROUND if PLAYGROUND.exists() else NO_PLAYGROUND
    return (
        (f"\n```{{index}} {words}\n```\n" if words else "") + (playground if page == "playground" else ""),
        f"\n```{{toctree}}\n:glob:\n:hidden:\n\n{below}\n```\n" if below else "",
    )
