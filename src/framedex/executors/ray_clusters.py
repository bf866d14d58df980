"""Clusters of Ray that a process can be connected to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RayCluster:
    """The cluster to work on.

    Attributes:
        address: its address; None to start one on this machine.
        workers: processors of a cluster that is started; None for all.
        gpus: its GPUs; None for all.
        memory: its bytes of memory for items that say what they need; None for all.
    """

    address: str | None
    workers: int | None = None
    gpus: float | None = None
    memory: int | None = None
