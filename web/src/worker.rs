//! The browser's side of the loop: its turns, its timers, and its messages to and from the page.

use agent_sim::live::{Ear, Gone, Heard, Hub, Line, News, Order, Orders};
use js_sys::{Function, Promise, Uint8Array};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_time::Instant;

/// How long the loop goes on without letting the browser have its turn: commands and acknowledgements
/// come only then.
const TURN: Duration = Duration::from_millis(15);

/// Messages that may be on their way to the page: a frame with the words for it, and the next. A page that
/// is slow, or not looked at, has them acknowledged late and misses frames; they do not pile up.
pub const ON_THEIR_WAY: usize = 4;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = postMessage)]
    fn post(message: &JsValue);

    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(done: &Function, milliseconds: f64);
}

/// Sends words to the page, at once.
pub fn tell(text: &str) {
    post(&JsValue::from_str(text));
}

/// Lets the browser have its turn, for that long at least.
async fn sleep(time: Duration) {
    let milliseconds = time.as_secs_f64() * 1e3;
    let promise = Promise::new(&mut |done, _| set_timeout(&done, milliseconds));
    // Nobody breaks this one.
    let _ = JsFuture::from(promise).await;
}

/// Waits for commands without keeping the browser from its events.
pub struct Patience {
    hub: Arc<Hub>,
    orders: Orders,
    /// When the browser last had its turn.
    turned: Cell<Instant>,
}

impl Patience {
    /// For commands that come to that hub.
    pub fn new(hub: Arc<Hub>, orders: Orders) -> Self {
        Self {
            hub,
            orders,
            turned: Cell::new(Instant::now()),
        }
    }
}

impl Ear for Patience {
    async fn hear(&self, wait: Duration) -> Result<Order, RecvTimeoutError> {
        let until = Instant::now() + wait;
        loop {
            match self.orders.try_recv() {
                Ok(order) => return Ok(order),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && self.turned.get().elapsed() < TURN {
                return Err(RecvTimeoutError::Timeout);
            }
            tokio::select! {
                biased;
                () = self.hub.ordered() => {}
                () = sleep(left) => self.turned.set(Instant::now()),
            }
        }
    }
}

/// The line to the page.
pub struct ToPage {
    /// Room for messages on their way; the page makes room by acknowledging them.
    pub room: Arc<Semaphore>,
    /// What the page says.
    pub heard: mpsc::UnboundedReceiver<String>,
}

impl Line for ToPage {
    async fn send(&mut self, news: News) -> Result<(), Gone> {
        self.room.acquire().await.map_err(|_| Gone)?.forget();
        match news {
            News::Text(text) => tell(&text),
            News::Frame(bytes) => post(&Uint8Array::from(&bytes[..]).buffer()),
        }
        Ok(())
    }

    async fn receive(&mut self) -> Result<Heard, Gone> {
        self.heard.recv().await.map(Heard::Text).ok_or(Gone)
    }
}
