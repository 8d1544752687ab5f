"""The simulator against the same work in JAX, timed in turns on the same machine.

    cargo build --release -p agent-sim --bin agent-sim --example pde_step_time
    python bench/against_jax.py
    python bench/against_jax.py --cores 1

Needs a Python with jax. The JAX side is bench/jax_reference.py, compiled. Both sides are timed in
short turns, so that what else the machine does strikes both alike.

The closed loop: JAX computes in single precision with fused multiply-adds and the agents of a step
as one batch; ours keeps the field in double precision and computes each agent by itself, to the bit
as a microcontroller would. The turbulence step: JAX keeps the spectrum between steps; ours includes
the transforms of field and force.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def closed_loop(reference, program, turns):
    """One heat-1d episode, 8 agents, 300 steps: seconds of JAX's and of our runs."""
    episode = jax_episode(reference, "heat-1d")
    command = [program, "bench", "heat-1d", "--episodes", "40", "--json"]
    jax_s, ours_s = [], []
    for _ in range(turns):
        jax_s += [seconds(episode) for _ in range(40)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ours_s += answer["seconds"]
    what = f"heat-1d closed loop, {answer['agents']} agents, {answer['steps']} steps, one episode"
    # A swarm this small is one group, and a group is computed on one thread.
    return {"what": what, "bar": 3.0, "jax_s": jax_s, "ours_s": ours_s, "our_threads": 1}


def jax_episode(reference, name):
    """A compiled and warmed-up forward rollout of a random policy on one random episode."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    problem = reference.PROBLEMS[name](jnp.float32)
    rng = np.random.default_rng(0)
    params = reference.as_dtype(reference.init_policy(rng, **problem.net), jnp.float32)
    data = reference.as_dtype(problem.sample(rng, 1), jnp.float32)
    rollout = jax.jit(lambda params, data: reference.loss_of(problem, problem.horizon, False, params, data))
    run = lambda: jax.block_until_ready(rollout(params, data))
    for _ in range(3):
        run()
    return run


def turbulence_step(reference, example, turns, precision):
    """One control step of 2D turbulence, five Runge-Kutta steps on 64 x 64 points."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", precision == "f64")
    dtype = jnp.float64 if precision == "f64" else jnp.float32
    n, viscosity, dt = 64, 5e-4, 2e-3
    advect = reference.vorticity_advection(n, dtype)
    damping = jnp.asarray(-viscosity * sum(k**2 for k in reference.wave_numbers(n, 1.0)), dtype)

    def step(w, force):
        rate = lambda w: advect(w) + damping * w + force
        for _ in range(5):
            k1 = rate(w)
            k2 = rate(w + dt / 2 * k1)
            k3 = rate(w + dt / 2 * k2)
            k4 = rate(w + dt * k3)
            w = w + dt / 6 * (k1 + 2 * (k2 + k3) + k4)
        return w

    step = jax.jit(step, donate_argnums=0)
    field = reference.periodic_field(np.random.default_rng(0), 1, n, 2, 4.0, 86.0)
    w = jnp.fft.rfft2(jnp.asarray(field, dtype))
    force = jnp.zeros_like(w)
    assert force.dtype == (jnp.complex128 if precision == "f64" else jnp.complex64)
    w = jax.block_until_ready(step(w, force))
    jax_s, ours_s = [], []
    for _ in range(turns):
        command = [example, "turbulence-2d", precision, str(n)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours_s += [1e-9 * float(line) for line in printed.split()[10:]]  # the first ones warm up
        for _ in range(100):
            began = time.perf_counter()
            w = jax.block_until_ready(step(w, force))
            jax_s.append(time.perf_counter() - began)
        assert bool(jnp.all(jnp.isfinite(w)))
    what = f"turbulence-2d control step, {n} x {n}, {precision}"
    cores = len(os.sched_getaffinity(0))
    return {"what": what, "bar": 3.0, "jax_s": jax_s, "ours_s": ours_s, "our_threads": cores}


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def verdict(result):
    """The comparison in lines: at best, in the median, and whether the bar is met."""
    jax_s, ours_s = result["jax_s"], result["ours_s"]
    lines = [result["what"]]
    for name, figure in (("best", min), ("median", statistics.median)):
        jax, ours = figure(jax_s), figure(ours_s)
        lines.append(f"  {name:<7} JAX {1e3 * jax:8.3f} ms   ours {1e3 * ours:8.3f} ms   {jax / ours:5.2f} times as fast")
    ratio = statistics.median(jax_s) / statistics.median(ours_s)
    met = "met" if ratio >= result["bar"] else "missed"
    lines.append(f"  bar     {result['bar']:g} times in the median: {met} ({ratio:.2f})")
    lines.append(f"  threads JAX {len(os.sched_getaffinity(0))}, ours {result['our_threads']}; {len(jax_s)} and {len(ours_s)} runs")
    return "\n".join(lines)


def load(path):
    """The reference as a module."""
    spec = importlib.util.spec_from_file_location("jax_reference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, default=ROOT / "bench/jax_reference.py", help="the JAX side")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/agent-sim", help="our simulator")
    parser.add_argument("--turns", type=int, default=10, help="turns a side (default: 10)")
    parser.add_argument("--cores", type=int, help="cores that both sides may use (default: all)")
    parser.add_argument("--json", action="store_true", help="print every timing as one JSON object")
    args = parser.parse_args()
    if not args.reference.is_file():
        parser.error(f"there is no {args.reference}")
    example = args.program.parent / "examples/pde_step_time"
    for built in (args.program, example):
        if not built.is_file():
            parser.error(f"there is no {built}: cargo build --release -p agent-sim --bin agent-sim --example pde_step_time")
    if args.cores:  # before JAX starts its threads; our process inherits it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    reference = load(args.reference)
    results = [
        closed_loop(reference, args.program, args.turns),
        turbulence_step(reference, example, args.turns, "f32"),
        turbulence_step(reference, example, args.turns, "f64"),
    ]
    if args.json:
        print(json.dumps(results))
    else:
        print("\n\n".join(verdict(result) for result in results))


if __name__ == "__main__":
    main()
