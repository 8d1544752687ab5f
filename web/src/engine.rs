//! What the page's worker starts.

use crate::asked::{self, Asked, PROBLEMS};
use crate::worker::{ON_THEIR_WAY, Patience, ToPage, tell};
use agent_sim::live::play::{Show, play_by};
use agent_sim::live::{Gone, Hub, Line, News, attend};
use agent_sim::scenario::Scenario;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

/// A run, and the page's way to it.
#[wasm_bindgen]
pub struct Engine {
    said: mpsc::UnboundedSender<String>,
    room: Arc<Semaphore>,
}

#[wasm_bindgen]
impl Engine {
    /// Begins the run that an address asks for: its names and values, as JSON. From then on the page gets
    /// messages.
    #[wasm_bindgen(constructor)]
    pub fn new(address: String) -> Self {
        std::panic::set_hook(Box::new(|panic| {
            over(&format!(
                "The simulator broke off: {panic}. Load the page again."
            ));
        }));
        let (said, heard) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(ON_THEIR_WAY));
        let line = ToPage {
            room: Arc::clone(&room),
            heard,
        };
        spawn_local(async move {
            if let Err(error) = run(&address, line).await {
                over(&error.to_string());
            }
        });
        Self { said, room }
    }

    /// The page asks for something.
    pub fn hear(&self, text: String) {
        // Nobody listens any more to a run that is over.
        let _ = self.said.send(text);
    }

    /// A message has reached the page.
    pub fn seen(&self) {
        self.room.add_permits(1);
    }
}

/// Tells the page that nothing more comes, and why.
fn over(why: &str) {
    tell(&json!({ "is": "over", "why": why }).to_string());
}

async fn run(address: &str, mut line: ToPage) -> anyhow::Result<()> {
    let known = PROBLEMS.map(|problem| problem.name);
    let choice = json!({ "is": "choice", "problems": known }).to_string();
    if line.send(News::Text(choice.into())).await == Err(Gone) {
        return Ok(());
    }
    let pairs: Vec<(String, String)> = serde_json::from_str(address)?;
    let problems = asked::problems()?;
    let Asked { scenario, playing } = asked::read(&pairs)?;
    let (hub, orders) = Hub::new();
    if let Some(seat) = hub.sit_down(1) {
        spawn_local(attend(line, seat, Arc::clone(&hub)));
    }
    let ear = Patience::new(Arc::clone(&hub), orders);
    // The page hands it to the person who asked.
    let save = |_: &Scenario| Ok("scenario.toml".to_owned());
    let show = Show {
        scenario,
        recorded: None,
        problems: &problems,
        rig: None,
        payload: &|_| anyhow::bail!("there are no boards in a browser"),
        plant: None,
        playing,
        save: &save,
    };
    play_by(show, &hub, &ear).await
}
