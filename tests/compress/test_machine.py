import subprocess
import sys
from pathlib import Path

import pytest

from compress import machine
from compress.machine import Gpu, Machine, describe_machine, library_versions, supports_bf16


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def topology(siblings: dict[int, str]) -> dict[str, str]:
    return {
        f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": f"{group}\n"
        for cpu, group in siblings.items()
    }


X86 = """processor\t: 0
model name\t: Some CPU @ 2GHz
flags\t\t: fpu avx2 avx512f avx512_vnni amx_bf16

processor\t: 1
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd i8mm bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def test_cpu_name_and_flags_come_from_cpuinfo(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": X86})
    assert machine.cpu_model(tmp_path) == "Some CPU @ 2GHz"
    assert machine.cpu_flags(tmp_path) == ("avx2", "avx512f", "avx512_vnni", "amx_bf16")


def test_arm_flags_are_read_and_the_cpu_is_named_by_its_numbers(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": ARM})
    assert machine.cpu_flags(tmp_path) == ("asimd", "i8mm", "bf16")
    assert machine.cpu_model(tmp_path) == "arm implementer 0x41 part 0xd40"


def test_nothing_readable_gives_unknown_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.processor", lambda: "")
    assert machine.cpu_model(tmp_path) == "unknown"
    assert machine.cpu_flags(tmp_path) == ()
    assert machine.usable_physical_cores(tmp_path, cpus=[0]) == 1


def test_macos_is_asked_through_sysctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"machdep.cpu.brand_string": "Apple M9", "hw.optional.arm.FEAT_BF16": "1"}
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(machine.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(machine, "_sysctl", lambda name: answers.get(name, ""))
    assert machine.cpu_model(tmp_path) == "Apple M9"
    assert machine.cpu_flags(tmp_path) == ("asimd", "bf16")


def test_hyper_threads_of_one_core_count_once(tmp_path: Path) -> None:
    write(tmp_path, topology({0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5"}))
    assert machine.usable_physical_cores(tmp_path, cpus=[0, 1, 4, 5]) == 2


def test_only_cores_of_the_affinity_count(tmp_path: Path) -> None:
    write(tmp_path, topology({cpu: str(cpu) for cpu in range(8)}))
    assert machine.usable_physical_cores(tmp_path, cpus=[2, 3, 7]) == 3


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "300000 100000\n"}, 3),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
    ],
)
def test_the_quota_of_a_container_limits_the_cores(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    write(tmp_path, topology({cpu: str(cpu) for cpu in range(8)}) | files)
    assert machine.usable_physical_cores(tmp_path, cpus=range(8)) == cores


def test_this_machine_is_described_and_survives_json() -> None:
    here = describe_machine()
    assert 1 <= here.physical_cores <= here.logical_cpus
    assert here.memory_bytes is None or here.memory_bytes > 2**20
    assert here.versions["torch"].startswith("2.")
    assert Machine.model_validate_json(here.model_dump_json()) == here


def test_versions_are_read_without_importing() -> None:
    code = (
        "import sys; from compress.machine import library_versions; print(library_versions());"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout


def test_a_library_that_is_not_installed_is_left_out() -> None:
    assert list(library_versions(["numpy", "no-such-library"])) == ["numpy"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("avx2", "avx512f"), False),
        (("avx512_bf16",), True),
        (("amx_bf16",), True),
        (("asimd", "bf16"), True),
    ],
)
def test_bf16_on_a_cpu_needs_its_instructions(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], expected: bool
) -> None:
    monkeypatch.setattr(machine, "cpu_flags", lambda: flags)
    assert supports_bf16("cpu") is expected


def test_bf16_on_a_gpu_needs_compute_capability_8(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tuple(Gpu(name="g", memory_bytes=1, compute_capability=c) for c in ((7, 5), (8, 0)))
    monkeypatch.setattr(machine, "list_gpus", lambda: gpus)
    assert [supports_bf16(name) for name in ("cuda", "cuda:0", "cuda:1", "cuda:2")] == [
        False,
        False,
        True,
        False,
    ]
