//! A training's closed loops on a GPU.

use super::closed_loop::GpuLoop;
use super::device::{Gpu, GpuError};
use super::spec::LoopSpec;
use crate::loss::TERMS;
use crate::policy::PolicyConfig;
use crate::rollout::ClosedLoop;
use crate::trial::Trial;
use std::sync::Arc;

/// Closed loops, each with its GPU's form.
#[derive(Debug)]
pub struct GpuLoops(Vec<(Arc<ClosedLoop>, GpuLoop)>);

impl GpuLoops {
    /// Compiles `closed_loops`, some of which may be the same, for batches of up to `batch` episodes.
    pub fn new(
        gpu: &Gpu,
        closed_loops: &[Arc<ClosedLoop>],
        policy: &PolicyConfig,
        batch: usize,
    ) -> Result<Self, GpuError> {
        let mut loops: Vec<(Arc<ClosedLoop>, GpuLoop)> = Vec::new();
        for closed_loop in closed_loops {
            if loops
                .iter()
                .any(|(known, _)| Arc::ptr_eq(known, closed_loop))
            {
                continue;
            }
            let spec = LoopSpec {
                problem: closed_loop.problem,
                agents: closed_loop.agents,
                horizon: closed_loop.horizon,
                batch,
                shape: policy.shape.clone(),
                sight: policy.sight.clone(),
                threads: 0,
            };
            loops.push((closed_loop.clone(), GpuLoop::new(gpu, &spec)?));
        }
        Ok(Self(loops))
    }

    fn of(&mut self, closed_loop: &ClosedLoop) -> &mut GpuLoop {
        self.0
            .iter_mut()
            .find(|(known, _)| std::ptr::eq(known.as_ref(), closed_loop))
            .map(|(_, gpu_loop)| gpu_loop)
            .expect("a loop of this training")
    }

    /// Terms of every episode; see [`GpuLoop::terms`].
    pub fn terms(
        &mut self,
        closed_loop: &ClosedLoop,
        parameters: &[f32],
        trials: &[Trial],
    ) -> Result<Vec<[f64; TERMS]>, GpuError> {
        self.of(closed_loop).terms(parameters, trials)
    }

    /// Terms of every episode and the gradient of their weighted sum; see [`GpuLoop::gradient`].
    pub fn gradient(
        &mut self,
        closed_loop: &ClosedLoop,
        parameters: &[f32],
        trials: &[Trial],
        weights: &[f64; TERMS],
    ) -> Result<(Vec<[f64; TERMS]>, Vec<f32>), GpuError> {
        self.of(closed_loop).gradient(parameters, trials, weights)
    }
}
