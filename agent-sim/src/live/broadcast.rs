//! A run that somebody else drives, shown while it goes: to be looked at, not touched.

use super::frame::Raster;
use super::scene;
use super::serve::Server;
use super::{Command, Frame, Hub, Order, Orders};
use crate::episode::Snapshot;
use crate::report::{Scale, line};
use crate::rig::Rig;
use crate::scenario::Team;
use problem::Episode;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two frames at least.
const BETWEEN: Duration = Duration::from_millis(16);
/// Most steps whose figures are kept for those who come late.
const FIGURES: usize = 100_000;

/// Shows a run to whoever comes.
pub struct Broadcast<'t> {
    team: &'t Team,
    hub: Arc<Hub>,
    orders: Orders,
    raster: Raster,
    scale: Scale,
    figures: Vec<[f32; 2]>,
    shown_at: Option<Instant>,
}

impl<'t> Broadcast<'t> {
    /// Of the run of a team, called `name`, by a server that listens.
    pub fn begin(
        server: Server,
        team: &'t Team,
        episode: &Episode,
        name: &str,
        boards: usize,
    ) -> anyhow::Result<Self> {
        let (hub, orders) = Hub::new();
        let raster = Raster::new(&team.problem.grid);
        let scale = Scale::of_field(&team.problem, episode, &[]);
        let runs = [(name, line::BLUE)];
        hub.set_hello(scene::hello(team, &raster, &scale, &runs, boards, false).to_string());
        server.start(Arc::clone(&hub))?;
        Ok(Self {
            team,
            hub,
            orders,
            raster,
            scale,
            figures: Vec::new(),
            shown_at: None,
        })
    }

    /// Waits until somebody looks, but no longer than that; whether anybody does.
    pub fn await_viewer(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        while !self.hub.is_watched() && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.hub.is_watched()
    }

    /// Shows the state before the first step or after a step.
    pub fn push(&mut self, snapshot: &Snapshot<'_>, rig: Option<&Rig>) {
        let frame = Frame::new(
            &self.team.problem,
            &self.raster,
            self.scale.high(),
            0,
            snapshot,
        );
        if self.figures.len() < FIGURES {
            self.figures.extend(&frame.figures);
        }
        while let Ok(Order { command, answer }) = self.orders.try_recv() {
            let said = match command {
                Command::Curves {} => json!({
                    "is": "curves",
                    "take": 0,
                    "steps": (0..self.figures.len()).collect::<Vec<usize>>(),
                    "runs": [&self.figures],
                }),
                Command::Select { .. } => continue,
                _ => json!({
                    "is": "refused",
                    "why": "this run is only watched; agent-sim live lets hands on it",
                }),
            };
            let _ = answer.try_send(said.to_string());
        }
        let due = self.shown_at.is_none_or(|shown| shown.elapsed() >= BETWEEN);
        if !due && snapshot.step != self.team.steps {
            return;
        }
        self.shown_at = Some(Instant::now());
        self.hub.show(Arc::new(frame));
        let faults = scene::faults(self.team);
        let state = json!({
            "is": "state",
            "take": 0,
            "playing": snapshot.step < self.team.steps,
            "speed": null,
            "step": snapshot.step,
            "head": snapshot.step,
            "steps": self.team.steps,
            "seed": 0,
            "agents": self.team.agents,
            "selected": null,
            "faults": faults,
            "events": [],
            "undoable": 0,
            "ended": null,
            "fingerprint": null,
            "boards": scene::boards(rig),
        });
        self.hub.set_state(state.to_string());
    }
}
