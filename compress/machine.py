"""The machine a number was measured on: without it a latency means nothing.

Everything is read from files the kernel always has (``/proc``, ``/sys``), so it works in containers without
``lscpu``; macOS is asked through ``sysctl``. What cannot be found out is ``"unknown"`` or ``None``, never an
error.
"""

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from encoder.errors import ConfigError

UNKNOWN = "unknown"

# The instruction sets that decide which kernels a runtime picks, spelt as Linux spells them.
CPU_FLAGS = (
    *("avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"),
)
# The same on macOS: the name after hw.optional.arm. or inside machdep.cpu.features.
MACOS_FLAGS = {
    "FEAT_FP16": "asimdhp",
    "FEAT_DotProd": "asimddp",
    "FEAT_I8MM": "i8mm",
    "FEAT_BF16": "bf16",
    "FEAT_SME": "sme",
}
LIBRARIES = (
    *("enc-encoder", "torch", "numpy", "tokenizers", "safetensors", "datasets", "evaluate"),
    *("scikit-learn", "huggingface_hub", "onnx", "onnxruntime", "pydantic"),
)


class Gpu(BaseModel):
    """One CUDA device; ``compute_capability`` is (major, minor), (8, 0) being the first with bf16."""

    model_config = ConfigDict(frozen=True)

    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]


class Machine(BaseModel):
    """Where a measurement was made.

    ``physical_cores`` are those this process may use: its CPU affinity and the quota of its container are
    taken off, hyper-threads of one core count once. ``memory_bytes`` is limited by the container likewise.
    ``versions`` maps a library to its version; a library that is not installed is left out.
    """

    model_config = ConfigDict(frozen=True)

    cpu: str
    cpu_flags: tuple[str, ...]
    architecture: str
    physical_cores: int
    logical_cpus: int
    memory_bytes: int | None
    gpus: tuple[Gpu, ...]
    operating_system: str
    python: str
    versions: dict[str, str]


def describe_machine() -> Machine:
    """This machine, as far as it lets itself be known."""
    return Machine(
        cpu=cpu_model(),
        cpu_flags=cpu_flags(),
        architecture=platform.machine() or UNKNOWN,
        physical_cores=usable_physical_cores(),
        logical_cpus=len(_usable_cpus()),
        memory_bytes=memory_bytes(),
        gpus=list_gpus(),
        operating_system=platform.platform() or UNKNOWN,
        python=platform.python_version(),
        versions=library_versions(),
    )


def library_versions(names: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Versions of the installed ones of ``names``, read from their metadata without importing them."""
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def cpu_model(root: Path = Path("/")) -> str:
    """The CPU's name, from ``root``/proc/cpuinfo or macOS' sysctl."""
    info = _first_cpu(root)
    for key in ("model name", "Model", "Hardware", "cpu model"):
        if info.get(key):
            return info[key]
    if sys.platform == "darwin" and (brand := _sysctl("machdep.cpu.brand_string")):
        return brand
    if "CPU implementer" in info:  # arm kernels give numbers, no name
        return f"arm implementer {info['CPU implementer']} part {info.get('CPU part', '?')}"
    return platform.processor() or UNKNOWN


def cpu_flags(root: Path = Path("/")) -> tuple[str, ...]:
    """Those of ``CPU_FLAGS`` that this CPU has."""
    info = _first_cpu(root)
    present = set((info.get("flags") or info.get("Features") or "").split())
    if not present and sys.platform == "darwin":
        features = f"{_sysctl('machdep.cpu.features')} {_sysctl('machdep.cpu.leaf7_features')}"
        present = {flag.lower() for flag in features.split()}
        present |= {
            flag for name, flag in MACOS_FLAGS.items() if _sysctl(f"hw.optional.arm.{name}").strip() == "1"
        }
        if platform.machine() == "arm64":
            present.add("asimd")
    return tuple(flag for flag in CPU_FLAGS if flag in present)


def usable_physical_cores(root: Path = Path("/"), cpus: Iterable[int] | None = None) -> int:
    """Cores this process may use, at least 1: the default number of threads.

    Of ``cpus`` (default: the CPU affinity) those that are hyper-threads of one core count once; a container's
    CPU quota of 2.5 cores gives 2, because a third thread would be throttled.
    """
    usable = set(_usable_cpus() if cpus is None else cpus)
    cores = _count_cores(root, usable) or _count_cores_without_topology(len(usable))
    quota = _cpu_quota(root)
    if quota is not None:
        cores = min(cores, int(quota))
    return max(1, cores)


def list_gpus() -> tuple[Gpu, ...]:
    """The CUDA devices torch sees; none where torch or a working driver is missing."""
    try:
        import torch

        if not torch.cuda.is_available():
            return ()
        found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    except (ImportError, RuntimeError, OSError):
        return ()
    return tuple(
        Gpu(name=gpu.name, memory_bytes=gpu.total_memory, compute_capability=(gpu.major, gpu.minor))
        for gpu in found
    )


def require_gpu(otherwise: str) -> None:
    """Raise ``ConfigError`` where there is no GPU, naming what to give for --device ``otherwise``."""
    if not list_gpus():
        raise ConfigError(f"--device cuda: no GPU on this machine that torch can use; give {otherwise}")


def supports_bf16(device: str = "cpu") -> bool:
    """Whether ``device`` ("cpu", "cuda", "cuda:1") multiplies bfloat16 in hardware, so that it is a gain.

    torch computes bf16 on any CPU, but converts to float32 and back where the instructions are missing,
    which is slower than float32.
    """
    if device.startswith("cuda"):
        gpus = list_gpus()
        index = int(device.partition(":")[2] or 0)
        return index < len(gpus) and gpus[index].compute_capability >= (8, 0)
    return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(cpu_flags())


def _first_cpu(root: Path) -> dict[str, str]:
    """The fields of the first CPU of /proc/cpuinfo, those of the whole machine after it included."""
    info: dict[str, str] = {}
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            info.setdefault(key.strip(), value.strip())
    return info


def _usable_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _count_cores(root: Path, cpus: set[int]) -> int:
    """Distinct groups of hyper-thread siblings among ``cpus``; 0 if the kernel does not tell."""
    groups = set()
    for cpu in cpus:
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = _read(topology / "core_cpus_list") or _read(topology / "thread_siblings_list")
        if not siblings.strip():
            return 0
        groups.add(siblings.strip())
    return len(groups)


def _count_cores_without_topology(usable: int) -> int:
    physical: int | None = None
    try:
        import psutil

        physical = psutil.cpu_count(logical=False)
    except (ImportError, OSError, NotImplementedError):
        pass
    return min(physical, usable) if physical else usable


def _cpu_quota(root: Path) -> float | None:
    """CPUs' worth of time the container allows; None without a limit. cgroup v2, then v1."""
    quotas = []
    for folder in _cgroup_folders(root, controller="cpu"):
        limit = _read(folder / "cpu.max").split()
        if not limit:
            limit = (_read(folder / "cpu.cfs_quota_us") + " " + _read(folder / "cpu.cfs_period_us")).split()
        try:
            quota, period = (float(word) for word in limit)
        except ValueError:  # "max 100000", or no such file
            continue
        if quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_bytes(root: Path = Path("/")) -> int | None:
    """The memory of this machine, or of the container if that has less; ``None`` if nothing tells."""
    sizes = []
    try:
        import psutil

        sizes.append(int(psutil.virtual_memory().total))
    except (ImportError, OSError):
        pass
    for folder in _cgroup_folders(root, controller="memory"):
        limit = (_read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")).strip()
        if limit.isdigit():
            sizes.append(int(limit))
    return min(sizes, default=None)


def _cgroup_folders(root: Path, *, controller: str) -> list[Path]:
    """The folders whose limits hold for this process: its own cgroup and all above it, v1 and v2."""
    mount = root / "sys/fs/cgroup"
    folders = [mount, mount / controller]
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            base = mount
        elif controller in controllers.split(","):
            base = mount / controller
        else:
            continue
        parts = [part for part in path.split("/") if part]
        folders += [base.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    return folders


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
