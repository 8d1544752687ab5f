"""One control step of 2D turbulence: this simulator against the same step in JAX.

    cargo build --release -p agent-sim --example pde_step_time
    python bench/turbulence_jax.py PATH/TO/jax_reference.py target/release/examples/pde_step_time

The JAX side is the reference module's own advection with damping and five Runge-Kutta substeps,
compiled, its argument donated, on all cores. It keeps the spectrum between steps; the simulator's
step includes the transforms of field and force. The two alternate, so that other load on the
machine hits both. Prints the best and the median step of each, and the ratio of the two.
"""

import argparse
import importlib.util
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

VISCOSITY, DT, SUBSTEPS = 5e-4, 2e-3, 5


def jax_step(reference, n, dtype):
    """A compiled step and its initial spectrum."""
    advect = reference.vorticity_advection(n, dtype)
    damping = jnp.asarray(-VISCOSITY * sum(k**2 for k in reference.wave_numbers(n, 1.0)), dtype)

    def step(w, force):
        rate = lambda w: advect(w) + damping * w + force
        for _ in range(SUBSTEPS):
            k1 = rate(w)
            k2 = rate(w + DT / 2 * k1)
            k3 = rate(w + DT / 2 * k2)
            k4 = rate(w + DT * k3)
            w = w + DT / 6 * (k1 + 2 * (k2 + k3) + k4)
        return w

    field = reference.periodic_field(np.random.default_rng(0), 1, n, 2, 4.0, 86.0)
    w = jnp.fft.rfft2(jnp.asarray(field, dtype))
    return jax.jit(step, donate_argnums=0), w, jnp.zeros_like(w)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", help="the JAX reference module")
    parser.add_argument("example", help="the compiled example pde_step_time")
    parser.add_argument("--points", type=int, default=64, help="grid points per axis (default: 64)")
    parser.add_argument("--rounds", type=int, default=10, help="alternations (default: 10)")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    spec = importlib.util.spec_from_file_location("reference", args.reference)
    reference = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = reference
    spec.loader.exec_module(reference)

    for name, dtype in (("f64", jnp.float64), ("f32", jnp.float32)):
        step, w, force = jax_step(reference, args.points, dtype)
        assert force.dtype == (jnp.complex128 if name == "f64" else jnp.complex64)
        w = jax.block_until_ready(step(w, force))
        ours, theirs = [], []
        for _ in range(args.rounds):
            command = [args.example, "turbulence-2d", name, str(args.points)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            ours += [1e-3 * float(line) for line in printed.split()[10:]]
            for _ in range(100):
                began = time.perf_counter()
                w = jax.block_until_ready(step(w, force))
                theirs.append(1e6 * (time.perf_counter() - began))
            assert bool(jnp.all(jnp.isfinite(w)))
        for what, pick in (("best", min), ("median", np.median)):
            a, b = pick(theirs), pick(ours)
            print(f"{name} {args.points}² {what:<7} JAX {a:8.0f} µs   simulator {b:8.0f} µs   ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
