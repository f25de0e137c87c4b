"""Tiles as transfers: the hardware moves two dimensions at once, and a tile is moved by one instruction."""

import numpy as np

from tuneloom_vta.errors import ScheduleError
from tuneloom_vta.schedules.tiling import Numbers, Tiling

Transfer = dict[str, Numbers | int]


def refused(tiling: Tiling) -> str:
    """Why no transfer moves a tile; empty if one does."""
    knobs, workload = tiling.knobs, tiling.workload
    try:
        if knobs.tile_ci > 1:
            _require_plain(workload.padding)
            _flattened(tiling.in_rows, tiling.in_columns, workload.width, "inputs")
        if knobs.tile_co > 1:
            _flattened(knobs.tile_h, knobs.tile_w, workload.out_width, "results")
    except ScheduleError as error:
        return str(error)
    return ""


def input_transfers(tiling: Tiling) -> Transfer:
    """Fields of the loads of inputs by round, step and thread; `dram` counts from the first input."""
    rows, columns, workload = tiling.rows(), tiling.columns(), tiling.workload
    step = np.arange(tiling.steps).reshape(1, -1, 1) * tiling.knobs.tile_ci
    image = workload.height * workload.width
    first = step * image + (rows.begin * workload.width + columns.begin)[:, None, :]
    if tiling.knobs.tile_ci == 1:
        fields = {"y_size": rows.size, "x_size": columns.size, "y_before": rows.before}
        fields |= {"y_after": rows.after, "x_before": columns.before, "x_after": columns.after}
        spread = {name: np.broadcast_to(field[:, None, :], first.shape) for name, field in fields.items()}
        return {"dram": first, "x_stride": workload.width, **spread}
    _require_plain(workload.padding)
    flat = _flattened(tiling.in_rows, tiling.in_columns, workload.width, "inputs")
    return {"dram": first, "x_stride": image, "x_size": flat, "y_size": tiling.knobs.tile_ci}


def weight_transfers(tiling: Tiling) -> Transfer:
    """Fields of the loads of weights by round, step and thread."""
    knobs, inside = tiling.knobs, tiling.workload.kernel**2
    blocks_in = tiling.workload.blocks(tiling.configuration)[0]
    channel = tiling.places[2][:, None, :] * knobs.tile_co
    step = np.arange(tiling.steps).reshape(1, -1, 1) * knobs.tile_ci
    return {
        "dram": (channel * blocks_in + step) * inside,
        "x_stride": blocks_in * inside,
        "x_size": knobs.tile_ci * inside,
        "y_size": knobs.tile_co,
    }


def result_transfers(tiling: Tiling) -> Transfer:
    """Fields of the stores of results by round and thread."""
    row, column, channel = tiling.places
    knobs, workload = tiling.knobs, tiling.workload
    height, width = workload.out_height, workload.out_width
    first = (channel * knobs.tile_co * height + row * knobs.tile_h) * width + column * knobs.tile_w
    if knobs.tile_co == 1:
        return {"dram": first, "x_stride": width, "x_size": knobs.tile_w, "y_size": knobs.tile_h}
    flat = _flattened(knobs.tile_h, knobs.tile_w, width, "results")
    return {"dram": first, "x_stride": height * width, "x_size": flat, "y_size": knobs.tile_co}


def _require_plain(padding: int) -> None:
    if padding:
        raise ScheduleError("several channels, rows and columns of a padded input are three dimensions")


def _flattened(rows: int, columns: int, width: int, what: str) -> int:
    """Elements of rows that lie one behind the other in memory."""
    if rows > 1 and columns != width:
        raise ScheduleError(f"several channels, rows and columns of {what} are three dimensions")
    return rows * columns
