//! What a viewer is sent and says, whatever the line to it.

use super::hub::{ANSWERS, Seat};
use super::{Command, Frame, Hub, Order};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The line to a viewer.
pub trait Line {
    /// Sends something. It waits until the viewer has room for more, so that one that is slow misses
    /// frames instead of having them pile up.
    fn send(&mut self, news: News) -> impl Future<Output = Result<(), Gone>>;

    /// What the viewer says next. Given up before it has come, nothing is lost.
    fn receive(&mut self) -> impl Future<Output = Result<Heard, Gone>>;
}

/// Something for a viewer.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// JSON.
    Text(Arc<str>),
    /// A frame, as its changes since the one before.
    Frame(Vec<u8>),
}

/// Something from a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A command, or what is meant to be one.
    Text(String),
    /// Bytes.
    NoText,
}

/// The viewer is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Shows a viewer everything, and takes its commands, until it goes or stalls.
pub async fn attend(mut line: impl Line, mut seat: Seat, hub: Arc<Hub>) {
    let (answer, mut answers) = mpsc::channel(ANSWERS);
    let mut before: Option<Arc<Frame>> = None;
    for news in [&mut seat.hello, &mut seat.state, &mut seat.agent] {
        news.mark_changed();
    }
    seat.frame.mark_changed();
    loop {
        let news = tokio::select! {
            biased;
            Some(text) = answers.recv() => News::Text(String::into(text)),
            Ok(()) = seat.hello.changed() => {
                // Another run: nothing of the frame before holds for it.
                before = None;
                News::Text(seat.hello.borrow_and_update().clone())
            }
            Ok(()) = seat.frame.changed() => {
                let Some(frame) = seat.frame.borrow_and_update().clone() else {
                    continue;
                };
                let bytes = frame.message(before.as_deref());
                before = Some(frame);
                News::Frame(bytes)
            }
            Ok(()) = seat.state.changed() => News::Text(seat.state.borrow_and_update().clone()),
            Ok(()) = seat.agent.changed() => News::Text(seat.agent.borrow_and_update().clone()),
            heard = line.receive() => match heard {
                Ok(heard) => match understand(&heard, &hub, &answer) {
                    Some(refusal) => News::Text(refusal.into()),
                    None => continue,
                },
                Err(Gone) => return,
            },
        };
        if matches!(&news, News::Text(text) if text.is_empty()) {
            continue;
        }
        if line.send(news).await == Err(Gone) {
            return;
        }
    }
}

/// Hands on what a viewer says; what cannot be is answered with a sentence.
fn understand(heard: &Heard, hub: &Hub, answer: &mpsc::Sender<String>) -> Option<String> {
    let refused = |why: String| Some(json!({ "is": "refused", "why": why }).to_string());
    let text = match heard {
        Heard::Text(text) => text,
        Heard::NoText => return refused("commands are text".to_owned()),
    };
    let command = match Command::read(text) {
        Ok(command) => command,
        Err(error) => return refused(format!("that is no command: {error}")),
    };
    let answer = answer.clone();
    let order = Order { command, answer };
    hub.order(order)
        .err()
        .and_then(|why| refused(why.to_owned()))
}
