"""The NVIDIA GPUs of this machine and who uses them, asked of the driver's own tool: no GPU is touched."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
_TOOL = "nvidia-smi"
_ASKING_S = 10.0
_GPU_FIELDS = "uuid,name,memory.used,utilization.gpu"
_USER_FIELDS = "gpu_uuid,pid,process_name,used_memory"
_MOST_ANCESTORS = 64

Ask = Callable[..., str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as the driver describes it; numbers that it does not tell are 0."""

    uuid: str
    name: str
    used_mib: int = 0
    busy_percent: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a process sees this GPU alone."""
        return {VISIBLE: self.uuid}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUser:
    """A process that computes on a GPU."""

    uuid: str
    pid: int
    program: str
    used_mib: int = 0

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid}, {self.used_mib} MiB)"


def ask_driver(*options: str) -> str:
    """What the driver's tool answers; nothing where there is no driver or it does not answer."""
    tool = shutil.which(_TOOL)
    if tool is None:
        return ""
    try:
        asked = subprocess.run(
            [tool, *options], capture_output=True, text=True, check=False, timeout=_ASKING_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout if asked.returncode == 0 else ""


def visible_gpus(ask: Ask = ask_driver, environment: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """The GPUs that processes started here may use, in the order in which these number them."""
    gpus = [_gpu(row) for row in _rows(ask(f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits"), 4)]
    wanted = environment.get(VISIBLE)
    if wanted is None:
        return tuple(gpus)
    found = []
    for word in wanted.split(","):
        gpu = _named(word.strip(), gpus)
        if gpu is None:  # the driver stops at the first one that it does not know, too
            break
        found.append(gpu)
    return tuple(found)


def users(ask: Ask = ask_driver, ours: Callable[[int], bool] | None = None) -> tuple[GpuUser, ...]:
    """Processes that compute on GPUs, without those that this process started."""
    is_ours = ours or is_own_process
    answer = ask(f"--query-compute-apps={_USER_FIELDS}", "--format=csv,noheader,nounits")
    every = (_user(row) for row in _rows(answer, 4))
    return tuple(user for user in every if user is not None and not is_ours(user.pid))


def disturbance(gpu: Gpu, others: Sequence[GpuUser]) -> str:
    """Who else uses a GPU, in words; empty if nobody does."""
    found = [str(user) for user in others if user.uuid == gpu.uuid]
    return f"{', '.join(found)}; the GPU is {gpu.busy_percent} % busy" if found else ""


def is_own_process(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
    for _ in range(_MOST_ANCESTORS):
        if pid == os.getpid():
            return True
        if pid <= 1:
            return False
        pid = _parent_of(pid)
    return False


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _named(word: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """The GPU that a word of CUDA_VISIBLE_DEVICES means: its number or the beginning of its identifier."""
    if word.isdecimal():
        return gpus[int(word)] if int(word) < len(gpus) else None
    return next((gpu for gpu in gpus if word and gpu.uuid.startswith(word)), None)


def _rows(answer: str, columns: int) -> list[list[str]]:
    rows = ([cell.strip() for cell in line.split(",")] for line in answer.splitlines())
    return [row for row in rows if len(row) == columns]


def _gpu(row: Sequence[str]) -> Gpu:
    return Gpu(uuid=row[0], name=row[1], used_mib=_number(row[2]), busy_percent=_number(row[3]))


def _user(row: Sequence[str]) -> GpuUser | None:
    if not row[1].isdecimal():
        return None
    program = row[2].rpartition("/")[2] or "a process"
    return GpuUser(uuid=row[0], pid=int(row[1]), program=program, used_mib=_number(row[3]))


def _number(text: str) -> int:
    """A number of the driver's; some GPUs answer `[N/A]`."""
    return int(text) if text.isdecimal() else 0
