//! A plant in another program: docs/plants.md is its protocol.

use super::address::Address;
use super::child::{Child, Ends};
use super::line::{LONGEST_LINE, Line, Trouble};
use super::message::{Answer, PROTOCOL, Question, facts, header, volumes};
use super::{LastWords, Plant, PlantError, Shared, Start};
use node_link::plain;
use problem::Problem;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Most characters that are shown of what a plant says of itself, and of its reasons.
const NAME: usize = 120;
const TEXT: usize = 4000;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a plant may take to end once it is told to, before it is ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a plant may take for an answer unless another time is given.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a plant, or connects to one, and agrees with it on a problem. It is ended, or let go, when the
/// last that holds it is gone.
pub fn open(
    address: &Address,
    patience: Duration,
    problem: &Problem,
) -> Result<Shared, PlantError> {
    let plant = format!("'{}'", plain(&address.to_string(), TEXT));
    let unreachable = |error: io::Error| PlantError::Unreachable {
        plant: plant.clone(),
        why: error.to_string(),
    };
    let (line, child) = match address {
        Address::Command(command) => {
            let (child, ends) = Child::start(command).map_err(unreachable)?;
            let Ends {
                input,
                output,
                errors,
            } = ends;
            let line = Line::new(input, output, Some(errors)).map_err(unreachable)?;
            (line, Some(child))
        }
        Address::Tcp(address) => {
            let socket = connect(address, patience.min(CONNECT)).map_err(unreachable)?;
            let other = socket.try_clone().map_err(unreachable)?;
            let line = Line::new(OwnedFd::from(socket), OwnedFd::from(other), None);
            (line.map_err(unreachable)?, None)
        }
    };
    let mut remote = Remote {
        plant: plant.clone(),
        patience,
        line,
        child,
        facts: String::new(),
        shapes: Shapes::of(problem),
        broken: None,
    };
    let name = remote.agree(problem)?;
    let called = match name.is_empty() {
        true => plant,
        false => format!("{plant} ({name})"),
    };
    Ok(Shared::new(&called, remote))
}

fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + patience;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(socket) => {
                // Every message is a question whose answer is waited for.
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(io::Error::new(
        last.kind(),
        format!("{last}; does it listen there?"),
    ))
}

/// The arrays of a problem.
struct Shapes {
    problem: Problem,
    state: Vec<usize>,
    forcing: Vec<usize>,
}

impl Shapes {
    fn of(problem: &Problem) -> Self {
        let shape = |first: usize| [&[first], problem.grid.shape()].concat();
        Self {
            problem: *problem,
            state: shape(problem.fields()),
            forcing: shape(problem.components()),
        }
    }
}

struct Remote {
    /// As errors call it.
    plant: String,
    patience: Duration,
    line: Line,
    /// None where it is no process of ours.
    child: Option<Child>,
    /// The hello that was agreed on.
    facts: String,
    shapes: Shapes,
    /// It failed before: what it says from then on means nothing.
    broken: Option<PlantError>,
}

impl Remote {
    /// Says what the problem is, unless that is known; returns what the plant calls itself.
    fn agree(&mut self, problem: &Problem) -> Result<String, PlantError> {
        let facts = facts(problem);
        if facts == self.facts {
            return Ok(String::new());
        }
        self.shapes = Shapes::of(problem);
        match self.ask(&facts, &volumes(problem), "hello")? {
            (Answer::Hello { protocol, name }, _) => {
                if protocol != PROTOCOL {
                    return Err(self.malformed(format!(
                        "it speaks version {protocol} of the protocol and this program version \
                         {PROTOCOL}"
                    )));
                }
                self.facts = facts;
                Ok(plain(&name, NAME))
            }
            (other, _) => Err(self.out_of_turn("hello", &other)),
        }
    }

    /// Asks for a field.
    fn field(
        &mut self,
        question: &Question<'_>,
        values: &[f64],
        what: &str,
        state: &mut [f64],
    ) -> Result<(), PlantError> {
        let values = match self.ask(&header(question), values, what)? {
            (Answer::Field { .. }, values) => values,
            (other, _) => return Err(self.out_of_turn(what, &other)),
        };
        // What sensors cannot show is as good as infinite.
        if let Some(j) = values.iter().position(|z| !(*z as f32).is_finite()) {
            let grid = &self.shapes.problem.grid;
            let place = grid.place(j % grid.len());
            return Err(self.fail(PlantError::NotFinite {
                plant: self.plant.clone(),
                place: place[..grid.axes].to_vec(),
                value: values[j],
            }));
        }
        state.copy_from_slice(&values);
        Ok(())
    }

    /// Sends a question and waits for the answer to it, with its array. Both together have the patience.
    fn ask(
        &mut self,
        header: &str,
        values: &[f64],
        what: &str,
    ) -> Result<(Answer, Vec<f64>), PlantError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let deadline = Instant::now() + self.patience;
        let mut bytes = header.as_bytes().to_vec();
        bytes.push(b'\n');
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.line
            .send(&bytes, deadline)
            .map_err(|trouble| self.trouble(trouble, what, "took"))?;
        let line = self.line.line(deadline);
        let line = line.map_err(|trouble| self.trouble(trouble, what, "answered"))?;
        let answer: Answer = match serde_json::from_slice(&line) {
            Ok(answer) => answer,
            Err(error) => {
                let line = plain(&String::from_utf8_lossy(&line), 80);
                return Err(self.malformed(format!(
                    "the line '{line}' is no message of the protocol ({error}); does it write \
                     anything else to its standard output?"
                )));
            }
        };
        let mut values = Vec::new();
        match &answer {
            Answer::Error { text } => {
                let why = plain(text, TEXT);
                let said = self.said();
                return Err(self.fail(PlantError::Refused {
                    plant: self.plant.clone(),
                    why,
                    said,
                }));
            }
            Answer::Field { shape } => {
                if *shape != self.shapes.state {
                    let [there, here] = [shape, &self.shapes.state].map(|shape| in_words(shape));
                    return Err(self.malformed(format!(
                        "its field has the shape {there}, and that of {} is {here}",
                        self.shapes.problem.name
                    )));
                }
                let count = 8 * shape.iter().product::<usize>();
                let bytes = self.line.bytes(count, deadline);
                let bytes = bytes.map_err(|trouble| self.trouble(trouble, what, "answered"))?;
                let value = |b: &[u8]| f64::from_le_bytes(b.try_into().expect("eight bytes"));
                values = bytes.chunks_exact(8).map(value).collect();
            }
            Answer::Hello { .. } => {}
        }
        match self.line.unasked() {
            0 => Ok((answer, values)),
            more => Err(self.malformed(format!(
                "{more} bytes or more came after its answer to the {what}"
            ))),
        }
    }

    fn trouble(&mut self, trouble: Trouble, what: &str, verb: &str) -> PlantError {
        match trouble {
            Trouble::Late => {
                let error = PlantError::Stalled {
                    plant: self.plant.clone(),
                    why: match verb {
                        "took" => format!("it did not take all of the {what}"),
                        _ => format!("it did not answer the {what}"),
                    },
                    patience: self.patience,
                    said: self.said(),
                };
                self.fail(error)
            }
            Trouble::Closed => {
                let status = self.child.as_mut().and_then(Child::ended);
                let why = match status {
                    Some(status) => format!("it ended ({status}) before it {verb} the {what}"),
                    None => format!("it closed the line before it {verb} the {what}"),
                };
                let error = PlantError::Stopped {
                    plant: self.plant.clone(),
                    why,
                    said: self.said(),
                };
                self.fail(error)
            }
            Trouble::Flood => self.malformed(format!(
                "{LONGEST_LINE} bytes came without the end of a line; a message begins with a line \
                 of JSON"
            )),
            Trouble::Broken(error) => {
                let error = PlantError::Stopped {
                    plant: self.plant.clone(),
                    why: error.to_string(),
                    said: self.said(),
                };
                self.fail(error)
            }
        }
    }

    fn out_of_turn(&mut self, what: &str, answer: &Answer) -> PlantError {
        let answer = match answer {
            Answer::Hello { .. } => "hello",
            Answer::Field { .. } => "field",
            Answer::Error { .. } => "error",
        };
        self.malformed(format!("it answers a {what} with '{answer}'"))
    }

    fn malformed(&mut self, why: String) -> PlantError {
        let error = PlantError::Malformed {
            plant: self.plant.clone(),
            why,
            said: self.said(),
        };
        self.fail(error)
    }

    fn said(&mut self) -> LastWords {
        self.line.last_words()
    }

    fn fail(&mut self, error: PlantError) -> PlantError {
        self.broken = Some(error.clone());
        error
    }
}

impl Plant for Remote {
    fn reset(&mut self, start: &Start<'_>, state: &mut [f64]) -> Result<(), PlantError> {
        self.agree(start.problem)?;
        let shape = self.shapes.state.clone();
        let reset = Question::Reset {
            shape: &shape,
            dt: start.problem.control_interval / start.parts as f64,
            seed: start.seed,
        };
        let initial = state.to_vec();
        self.field(&reset, &initial, "reset", state)
    }

    fn step(&mut self, forcing: &[f64], dt: f64, state: &mut [f64]) -> Result<(), PlantError> {
        let shape = self.shapes.forcing.clone();
        let step = Question::Step { shape: &shape, dt };
        self.field(&step, forcing, "step", state)
    }
}

impl Drop for Remote {
    /// A plant that works is told that it may go, and has a moment to; then its process is ended.
    fn drop(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let deadline = Instant::now() + FAREWELL;
        let bye = header(&Question::Bye) + "\n";
        let told = self.line.send(bye.as_bytes(), deadline);
        self.line.close();
        if told.is_ok() && self.child.is_some() {
            self.line.ends(deadline);
        }
    }
}

fn in_words(shape: &[usize]) -> String {
    let (first, more) = shape.split_at(shape.len().min(8));
    let sizes: Vec<String> = first.iter().map(ToString::to_string).collect();
    let more = if more.is_empty() { "" } else { ", …" };
    format!("[{}{more}]", sizes.join(", "))
}
