"""The step that does nothing."""

import time

from wfcore import activity


@activity.defn(name="benchmark_step")
def step(place: int) -> tuple[int, float]:
    return place, time.time()
