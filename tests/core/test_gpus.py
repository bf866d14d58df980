"""GPUs as the files of drivers show them."""

import sys
from pathlib import Path

import pytest

from framedex.core import gpus
from tests.environment import Environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drivers have files on Linux")


@pytest.fixture
def devices(tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without GPUs."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        environment.pop(name, None)
    monkeypatch.setattr(gpus, "_DEVICES", tmp_path / "dev")
    monkeypatch.setattr(gpus, "_AMD", tmp_path / "nodes")
    (tmp_path / "dev").mkdir()
    return tmp_path / "dev"


def test_gpus__none(devices: Path) -> None:
    """Without files of a driver there is no GPU, and no engine looks for one."""
    (devices / "null").touch()
    assert (gpus.may_have_gpu(), gpus.gpu_count()) == (False, 0)


@pytest.mark.parametrize(
    ("chosen", "count"), [(None, 3), ("", 0), ("-1", 0), ("1", 1), ("0,2", 2), ("0,-1,2", 1), ("0,1,2,3,4", 3)]
)
def test_gpus__of_nvidia(devices: Path, environment: Environment, chosen: str | None, count: int) -> None:
    """Each device has a file; a variable restricts a process to some of them."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia2"):
        (devices / name).touch()
    if chosen is not None:
        environment["CUDA_VISIBLE_DEVICES"] = chosen
    assert (gpus.may_have_gpu(), gpus.gpu_count()) == (True, count)


def test_gpus__of_amd_and_windows(devices: Path) -> None:
    """AMD lists processors, too; Windows shows its GPUs as one device to Linux."""
    (devices / "dxg").touch()
    assert (gpus.may_have_gpu(), gpus.gpu_count()) == (True, 1)
    (devices / "kfd").touch()
    for number, units in enumerate((0, 256, 304)):
        (devices.parent / "nodes" / str(number)).mkdir(parents=True)
        (devices.parent / "nodes" / str(number) / "properties").write_text(f"cpu_cores_count 8\nsimd_count {units}\n")
    assert (gpus.may_have_gpu(), gpus.gpu_count()) == (True, 2)
