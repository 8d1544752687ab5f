//! The web server of a live run: a page, and a WebSocket for each viewer.
//!
//! It trusts nobody. It listens on this machine alone unless told otherwise, and then asks for a token; it
//! answers only to the name that it listens on, so that no other site can reach it through a viewer's
//! browser; the page can load nothing from elsewhere. Whatever a viewer sends is a short command or is
//! refused with a sentence.

use super::Hub;
use super::viewer::{Gone, Heard, Line, News, attend};
use anyhow::{Context, anyhow};
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Most viewers at a time.
const VIEWERS: usize = 64;
/// Longest message of a viewer, in bytes.
const LONGEST: usize = 64 << 10;
/// How long a viewer may take to let a message through before it is given up.
const STALLED: Duration = Duration::from_secs(20);

/// The page's files, built into the program.
const FILES: [(&str, &str, &str); 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../page/index.html"),
    ),
    (
        "/live.js",
        "text/javascript; charset=utf-8",
        include_str!("../../page/live.js"),
    ),
    (
        "/live.css",
        "text/css; charset=utf-8",
        include_str!("../../page/live.css"),
    ),
];

/// Nothing from elsewhere, nothing written into the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    token: Option<String>,
}

impl Server {
    /// Listens; `token` is asked for from then on.
    pub fn bind(address: SocketAddr, token: Option<String>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| {
            anyhow!("cannot listen on {address}: {error}; give another --port, or --port 0 for any")
        })?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token })
    }

    /// The page's address.
    pub fn url(&self) -> anyhow::Result<String> {
        let address = self.listener.local_addr()?;
        Ok(match &self.token {
            None => format!("http://{address}/"),
            Some(token) => format!("http://{address}/?token={token}"),
        })
    }

    /// Serves in a thread of its own until the program ends.
    pub fn start(self, hub: Arc<Hub>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the web server")?;
        let door = Arc::new(Door {
            port: self.listener.local_addr()?.port(),
            address: self.listener.local_addr()?.ip(),
            token: self.token,
            hub,
        });
        let files = FILES
            .into_iter()
            .fold(Router::new(), |router, (path, kind, text)| {
                router.route(
                    path,
                    get(move || async move { ([(header::CONTENT_TYPE, kind)], text) }),
                )
            });
        let app = files
            .route("/ws", get(meet))
            .layer(middleware::from_fn_with_state(Arc::clone(&door), guard))
            .with_state(door);
        std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    match tokio::net::TcpListener::from_std(self.listener) {
                        Ok(listener) => axum::serve(listener, app).await,
                        Err(error) => Err(error),
                    }
                })
            })?;
        Ok(())
    }
}

/// Who may come in.
struct Door {
    address: IpAddr,
    port: u16,
    token: Option<String>,
    hub: Arc<Hub>,
}

#[derive(Deserialize)]
struct Ticket {
    token: Option<String>,
}

impl Door {
    /// Whether a `Host` header is a name of this server. A page from elsewhere can make a browser talk to
    /// this machine, but not under the machine's own name.
    fn is_own(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else {
            return false;
        };
        if port.parse() != Ok(self.port) {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        match name.parse::<IpAddr>() {
            // Whoever listens on all addresses is known by any of them, and asks for a token.
            Ok(address) => address == self.address || self.address.is_unspecified(),
            Err(_) => {
                name == "localhost" || (self.address.is_unspecified() && self.token.is_some())
            }
        }
    }

    fn takes(&self, token: Option<&str>) -> bool {
        match (&self.token, token) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(given)) => is_same(own.as_bytes(), given.as_bytes()),
        }
    }
}

/// Compares without telling by its time how much was right.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differing == 0
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Turns away who asks for another server, and says on every answer what the page may do.
async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let own = text(request.headers(), header::HOST).is_some_and(|host| door.is_own(host));
    let mut response = match own {
        true => next.run(request).await,
        false => refuse("this server answers to its own address only"),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refuse(why: &'static str) -> Response {
    (StatusCode::FORBIDDEN, why).into_response()
}

/// A viewer comes.
async fn meet(
    State(door): State<Arc<Door>>,
    Query(ticket): Query<Ticket>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    // Browsers say from which page a socket is opened; other programs say nothing.
    let host = text(&headers, header::HOST).unwrap_or_default();
    let from_here = text(&headers, header::ORIGIN).is_none_or(|origin| {
        origin
            .strip_prefix("http://")
            .or(origin.strip_prefix("https://"))
            == Some(host)
    });
    if !from_here {
        return refuse("sockets are for this server's own page");
    }
    if !door.takes(ticket.token.as_deref()) {
        return refuse("the token is missing or wrong; open the address that agent-sim printed");
    }
    let Some(seat) = door.hub.sit_down(VIEWERS) else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "there are too many viewers",
        )
            .into_response();
    };
    let hub = Arc::clone(&door.hub);
    upgrade
        .max_message_size(LONGEST)
        .max_frame_size(LONGEST)
        .on_upgrade(move |socket| attend(Socket(socket), seat, hub))
}

/// A viewer at the other end of a WebSocket.
struct Socket(WebSocket);

impl Line for Socket {
    async fn send(&mut self, message: News) -> Result<(), Gone> {
        let message = match message {
            News::Text(text) => Message::text(&*text),
            News::Frame(bytes) => Message::binary(bytes),
        };
        match timeout(STALLED, self.0.send(message)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    async fn receive(&mut self) -> Result<Heard, Gone> {
        loop {
            return match self.0.recv().await {
                Some(Ok(Message::Text(text))) => Ok(Heard::Text(text.to_string())),
                Some(Ok(Message::Binary(_))) => Ok(Heard::NoText),
                // The end of a line is answered before there is nothing more to hear.
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => Err(Gone),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(address: &str, token: Option<&str>) -> Door {
        Door {
            address: address.parse().unwrap(),
            port: 7878,
            token: token.map(str::to_owned),
            hub: Hub::new().0,
        }
    }

    #[test]
    fn only_its_own_names_are_answered() {
        let local = door("127.0.0.1", None);
        for host in ["127.0.0.1:7878", "localhost:7878"] {
            assert!(local.is_own(host), "{host}");
        }
        for host in [
            "evil.example:7878",
            "127.0.0.1:80",
            "127.0.0.1",
            "10.0.0.7:7878",
            "",
        ] {
            assert!(!local.is_own(host), "{host}");
        }
        let open = door("0.0.0.0", Some("secret"));
        assert!(open.is_own("10.0.0.7:7878") && open.is_own("lab-pc:7878"));
        assert!(door("::1", None).is_own("[::1]:7878"));
    }

    #[test]
    fn tokens_are_asked_for_where_there_is_one() {
        assert!(door("127.0.0.1", None).takes(None));
        let open = door("0.0.0.0", Some("secret"));
        assert!(open.takes(Some("secret")));
        for wrong in [
            None,
            Some(""),
            Some("secre"),
            Some("secret2"),
            Some("sEcret"),
        ] {
            assert!(!open.takes(wrong), "{wrong:?}");
        }
    }
}
