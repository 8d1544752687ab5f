//! Policies: files, arrays, and agents that act.

use agent_core::agent::{Action, Mode};
use agent_core::message::Span;
use agent_core::policy;
use agent_sim::agents::{Agents, Shown};
use artifacts::arrays::{Arrays, Description, Tensor};
use artifacts::fitting;
use artifacts::output::write_whole;
use artifacts::policy_file::{PolicyFile, PolicyFileError, self_test};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use problem::{Problem, Problems, limit};
use pyo3::exceptions::{
    PyAttributeError, PyKeyError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyType};
use std::path::PathBuf;
use std::sync::Arc;

/// A policy: what every agent of a swarm carries, on a host or on a microcontroller.
///
/// >>> policy = Policy.shipped("heat-1d")
/// >>> policy.problem
/// 'heat-1d'
/// >>> arrays, header = policy.to_arrays()
/// >>> arrays["branch.0.weight"].shape
/// (42, 64)
/// >>> Policy.from_arrays(arrays, header).bytes == policy.bytes
/// True
#[pyclass(name = "Policy", module = "fieldswarm", frozen)]
#[derive(Clone)]
pub struct PyPolicy(Arc<Held>);

self_cell::self_cell! {
    /// A policy's bytes with what was read from them: checking them anew with every step would cost more
    /// than the step.
    struct Held {
        owner: PolicyFile,
        #[covariant]
        dependent: Parsed,
    }
}
type Parsed<'f> = policy::Policy<'f>;

/// What is wrong with a file is the system's; all else is the file's.
fn refused(error: PolicyFileError) -> PyErr {
    match error {
        PolicyFileError::Io { path, source } => PyOSError::new_err(format!(
            "cannot read the policy {}: {source}; check the path",
            path.display()
        )),
        PolicyFileError::SelfTest { .. } => PyRuntimeError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

impl PyPolicy {
    /// A policy that can be run, but for its self-test.
    pub fn new(file: PolicyFile) -> PyResult<Self> {
        let held = Held::try_new(file, PolicyFile::parse).map_err(refused)?;
        Ok(Self(Arc::new(held)))
    }

    /// Its bytes.
    pub fn file(&self) -> &PolicyFile {
        self.0.borrow_owner()
    }

    /// What they say.
    pub fn parsed(&self) -> &policy::Policy<'_> {
        self.0.borrow_dependent()
    }

    /// Refuses to act where this machine does not compute what the policy's maker did.
    fn tested(&self) -> PyResult<&policy::Policy<'_>> {
        self_test(self.parsed()).map_err(|mismatch| {
            refused(PolicyFileError::SelfTest {
                origin: self.file().origin().to_owned(),
                mismatch,
            })
        })?;
        Ok(self.parsed())
    }
}

#[pymethods]
impl PyPolicy {
    /// Reads a policy's file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Self::new(PolicyFile::read(&path).map_err(refused)?)
    }

    /// The policy that comes with a published problem.
    #[staticmethod]
    fn shipped(problem: &str) -> PyResult<Self> {
        let problem = found(problem)?;
        Self::new(PolicyFile::shipped(problem).map_err(refused)?)
    }

    /// A policy from the bytes of its file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Self::new(PolicyFile::new(bytes, "given as bytes".to_owned()))
    }

    /// Writes the policy's file, whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_whole(&path, self.file().bytes()).map_err(|e| PyOSError::new_err(e.to_string()))
    }

    /// The file's bytes.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.file().bytes())
    }

    /// Name of the problem that it is for.
    #[getter]
    fn problem(&self) -> &str {
        self.parsed().header().problem.as_str()
    }

    /// SHA-256 of its bytes, in hexadecimal: the name under which results and boards know it.
    #[getter]
    fn hash(&self) -> String {
        self.file().hash()
    }

    /// All that it says about itself but its numbers, see docs/policy-format.md.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arrays = Arrays::of(self.file()).map_err(refused)?;
        dictionary(py, &arrays.description)
    }

    /// Whether this machine computes the bits that the policy's maker did.
    fn self_test(&self) -> bool {
        self_test(self.parsed()).is_ok()
    }

    /// The policy's numbers as arrays of float32 by name, and its header: what :meth:`from_arrays` makes the
    /// same bytes of.
    ///
    /// Weights are ``[inputs, outputs]`` (``[3, 3, inputs, outputs]`` of convolutions). Of int8 weights it is
    /// what the integers stand for.
    fn to_arrays<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>)> {
        let Arrays {
            description,
            tensors,
        } = Arrays::of(self.file()).map_err(refused)?;
        let arrays = PyDict::new(py);
        for (name, Tensor { shape, values }) in tensors {
            let array = PyArray1::from_vec(py, values).reshape(shape)?;
            arrays.set_item(name, array)?;
        }
        Ok((arrays, dictionary(py, &description)?))
    }

    /// The policy of these arrays and this header; its probe is made here.
    ///
    /// Raises TypeError for what is no array of float32, ValueError for arrays and headers that make no
    /// policy, with the layer and both shapes.
    #[staticmethod]
    fn from_arrays(arrays: &Bound<'_, PyMapping>, header: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut tensors = Vec::new();
        for item in arrays.items()?.iter() {
            let (name, array): (String, Bound<'_, PyAny>) = item.extract()?;
            let (shape, values) = values::<f32>(&format!("the array '{name}'"), &array)?;
            tensors.push((name, Tensor { shape, values }));
        }
        let json = header.py().import("json")?;
        let text: String = json.call_method1("dumps", (header,))?.extract()?;
        let wrong =
            |error: artifacts::arrays::ArraysError| PyValueError::new_err(error.to_string());
        let arrays = Arrays {
            description: Description::from_json(&text).map_err(wrong)?,
            tensors,
        };
        let blob = arrays.blob().map_err(wrong)?;
        Self::new(PolicyFile::new(&blob, "made of arrays".to_owned()))
    }

    /// The policy of a PyTorch module or its state_dict: see `fieldswarm.build.from_torch`.
    #[staticmethod]
    fn from_torch(network: &Bound<'_, PyAny>, design: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        built("from_torch", network, design)
    }

    /// The policy of Flax parameters: see `fieldswarm.build.from_flax`.
    #[staticmethod]
    fn from_flax(parameters: &Bound<'_, PyAny>, design: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        built("from_flax", parameters, design)
    }

    /// So many agents that run it, each with a memory, a governor and a fail-safe of its own.
    fn agents(&self, count: usize) -> PyResult<PyAgents> {
        self.tested()?;
        let limit = limit::Limit {
            instead: "make several groups",
            ..limit::AGENTS
        };
        limit
            .check(count)
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(PyAgents {
            policy: self.clone(),
            agents: Agents::new(count),
            now_us: 0,
        })
    }

    /// What agents that have seen nothing before make of an observation: see :meth:`Agents.act`, here also
    /// of one agent alone, without the first axis.
    fn act<'py>(&self, observation: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let policy = self.tested()?;
        let sight = Sight::read(policy, observation)?;
        let single = sight.agents.is_none();
        let mut agents = Agents::new(sight.agents.unwrap_or(1));
        let shown = sight.shown(agents.len(), 0)?;
        let py = observation.py();
        py.detach(|| {
            agents.step(policy, &shown);
        });
        action_array(py, policy, agents.actions(), single)
    }

    fn __repr__(&self) -> String {
        let header = self.parsed().header();
        format!(
            "<Policy {} for {}, {} bytes>",
            &self.file().hash()[..8],
            header.problem,
            self.file().bytes().len()
        )
    }

    /// So that it can be sent to other processes.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = PyType::new::<Self>(py).getattr("from_bytes")?;
        Ok((make, (self.bytes(py),)))
    }
}

/// What the builder makes of a network.
fn built(
    function: &str,
    network: &Bound<'_, PyAny>,
    design: &Bound<'_, PyAny>,
) -> PyResult<Py<PyPolicy>> {
    let build = network.py().import("fieldswarm.build")?;
    let made = build.call_method1(function, (network, design))?;
    Ok(made.cast_into::<PyPolicy>()?.unbind())
}

/// The problem of a name or a file.
fn found(name: &str) -> PyResult<&'static Problem> {
    let problem = Problems::published().by_name(name);
    problem.map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The header of a policy for a problem, without a network: what `fieldswarm.build` starts from.
#[pyfunction]
#[pyo3(signature = (problem, window=None))]
pub fn blank_header<'py>(
    py: Python<'py>,
    problem: &str,
    window: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let problem = found(problem)?;
    let window = window.unwrap_or(problem.sensing.window);
    if window > policy::MAX_WIDTH {
        return Err(PyValueError::new_err(format!(
            "a window of {window} cells is too wide: at most {} are seen",
            policy::MAX_WIDTH
        )));
    }
    let header = fitting::header(problem, window);
    dictionary(py, &Description::of(&header, policy::FORMAT))
}

/// A description as Python has it.
fn dictionary<'py>(py: Python<'py>, description: &Description) -> PyResult<Bound<'py, PyAny>> {
    let json = py.import("json")?;
    json.call_method1("loads", (description.to_json(),))
}

/// Shape and numbers of an array of this type, copied: whoever holds it may change it meanwhile.
fn values<T: Element + Copy>(
    what: &str,
    array: &Bound<'_, PyAny>,
) -> PyResult<(Vec<usize>, Vec<T>)> {
    let py = array.py();
    let wanted = T::get_dtype(py);
    let Ok(untyped) = array.cast::<PyUntypedArray>() else {
        let found = array.get_type();
        return Err(PyTypeError::new_err(format!(
            "{what} is a {}; give a numpy array of {wanted}",
            found.name()?
        )));
    };
    let Ok(typed) = array.cast::<PyArrayDyn<T>>() else {
        return Err(PyTypeError::new_err(format!(
            "{what} has elements of {}; give {wanted}, for example by .astype(numpy.{wanted})",
            untyped.dtype()
        )));
    };
    let values = typed
        .try_readonly()
        .map_err(|_| PyRuntimeError::new_err(format!("{what} is being written to")))?;
    let values = values.as_array();
    Ok((values.shape().to_vec(), values.iter().copied().collect()))
}

/// Agents of one policy, which keep what they remember, their governor, their last action and their clock.
///
/// >>> import numpy as np
/// >>> agents = Policy.shipped("heat-1d").agents(3)
/// >>> field = np.ones((3, 22), dtype=np.float32)
/// >>> actions = agents.act({
/// ...     "field": field,
/// ...     "target": np.zeros_like(field),
/// ...     "position": np.array([[0.2], [0.5], [0.8]], dtype=np.float32),
/// ... })
/// >>> actions.shape, agents.modes
/// ((3, 2), ['active', 'active', 'active'])
#[pyclass(name = "Agents", module = "fieldswarm")]
pub struct PyAgents {
    policy: PyPolicy,
    agents: Agents,
    /// On their clock, at the last observation.
    now_us: u64,
}

#[pymethods]
impl PyAgents {
    /// One control step of each agent, as agent-core does it on any machine, to the bit.
    ///
    /// ``observation`` is a mapping, or any object with attributes, of numpy arrays, an agent a row:
    ///
    /// - ``field``: float32 ``(n, window + 2)``, in the plane ``(n, window + 2, window + 2)``: the window
    ///   around the agent and a cell more on each side;
    /// - ``target``: what the field should be there, of the same shape; left out for a policy without;
    /// - ``position``: float32 ``(n, axes)``;
    /// - ``inside``: uint16 ``(n, axes, 2)``, first and last cell of the patch inside the domain; all if
    ///   left out;
    /// - ``wide_field``, ``wide_target``: float32, the coarse picture of the whole, for policies that ask
    ///   for one: ``header["sensing"]["wide"]``, for all agents or with a first axis for each;
    /// - ``time_us``: the agents' clock; a period after the last step if left out.
    ///
    /// Returns float32 ``(n, 1 + axes)``: force, then velocities. Values that are not finite are what a
    /// broken sensor reads: such an agent holds its action, or waits, as :attr:`modes` tells.
    fn act<'py>(
        &mut self,
        observation: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let Self {
            policy,
            agents,
            now_us,
        } = self;
        let policy = policy.parsed();
        let sight = Sight::read(policy, observation)?;
        let count = agents.len();
        if sight.agents != Some(count) {
            let found = match sight.agents {
                Some(found) => format!("{found} agents"),
                None => "one agent without a first axis".to_owned(),
            };
            return Err(PyValueError::new_err(format!(
                "field is of {found} and these are {count}; give a row for each"
            )));
        }
        let period_us = u64::from(policy.header().timing.period_us);
        let shown = sight.shown(count, now_us.saturating_add(period_us))?;
        *now_us = shown.now_us;
        let py = observation.py();
        py.detach(|| {
            agents.step(policy, &shown);
        });
        action_array(py, policy, agents.actions(), false)
    }

    /// What each does at ``time_us`` without a new observation: holds on, fading, then fails safe.
    fn idle<'py>(
        &mut self,
        py: Python<'py>,
        time_us: u64,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let policy = self.policy.parsed();
        self.now_us = time_us;
        self.agents.idle(policy, time_us);
        action_array(py, policy, self.agents.actions(), false)
    }

    /// Forgets everything: as made.
    fn reset(&mut self) {
        self.agents = Agents::new(self.agents.len());
        self.now_us = 0;
    }

    /// What state each is in: 'waiting', 'active', 'holding' or 'failed-safe'.
    #[getter]
    fn modes(&self) -> Vec<&'static str> {
        let mode = |action: &Action| match action.mode {
            Mode::Waiting => "waiting",
            Mode::Active => "active",
            Mode::Holding => "holding",
            Mode::FailedSafe => "failed-safe",
        };
        self.agents.actions().iter().map(mode).collect()
    }

    /// Their clock at the last step, in microseconds.
    #[getter]
    fn time_us(&self) -> u64 {
        self.now_us
    }

    /// What they run.
    #[getter]
    fn policy(&self) -> PyPolicy {
        self.policy.clone()
    }

    fn __len__(&self) -> usize {
        self.agents.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<{} agents of {}>",
            self.agents.len(),
            self.policy.__repr__()
        )
    }
}

/// Actions as an array, an agent a row: force, velocities.
fn action_array<'py>(
    py: Python<'py>,
    policy: &policy::Policy,
    actions: &[Action],
    single: bool,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let axes = usize::from(policy.header().sensing.axes);
    let row = |action: &Action| {
        let [first, second] = action.velocity;
        [action.force, first, second].into_iter().take(1 + axes)
    };
    let all: Vec<f32> = actions.iter().flat_map(row).collect();
    let shape = match single {
        true => vec![1 + axes],
        false => vec![actions.len(), 1 + axes],
    };
    PyArray1::from_vec(py, all).reshape(shape)
}

/// An observation as it was given.
struct Sight {
    /// How many agents it is of; none: one, without an axis for it.
    agents: Option<usize>,
    time_us: Option<u64>,
    shown: Shown,
}

impl Sight {
    /// Reads a mapping or an object whose arrays have the shapes that the policy asks for.
    fn read(policy: &policy::Policy, observation: &Bound<'_, PyAny>) -> PyResult<Self> {
        let sensing = &policy.header().sensing;
        let axes = usize::from(sensing.axes);
        let side = usize::from(sensing.window) + 2;
        let patch = vec![side; axes];
        let field = given(observation, "field")?;
        let (shape, field) = values::<f32>("field", &need(field, "field", &patch)?)?;
        let agents = match shape.len() == axes {
            true => None,
            false => shape.first().copied(),
        };
        let rows: Vec<usize> = agents.into_iter().collect();
        // The shape for one agent, or for each.
        let each = |own: &[usize]| [&rows, own].concat();
        fits("field", &shape, &each(&patch))?;
        let target = given(observation, "target")?;
        let target = match (sensing.target, target) {
            (false, Some(_)) => return Err(superfluous("target", "has no target")),
            (false, None) => Vec::new(),
            (true, target) => array("target", need(target, "target", &patch)?, &each(&patch))?,
        };
        let position = need(given(observation, "position")?, "position", &[axes])?;
        let position: Vec<f32> = array("position", position, &each(&[axes]))?;
        let position = position.chunks_exact(axes.max(1)).map(|own| {
            let mut both = [0.0; 2];
            both[..axes].copy_from_slice(own);
            both
        });
        let position: Vec<[f32; 2]> = position.collect();
        let whole = Span {
            first: 0,
            last: sensing.window + 1,
        };
        let inside = match given(observation, "inside")? {
            None => {
                let all = match axes {
                    1 => [whole, Span::default()],
                    _ => [whole; 2],
                };
                vec![all; position.len()]
            }
            Some(inside) => {
                let ends: Vec<u16> = array("inside", inside, &each(&[axes, 2]))?;
                let agents = ends.chunks_exact(2 * axes.max(1));
                let spans = agents.map(|own| {
                    let mut both = [Span::default(); 2];
                    for (span, ends) in both.iter_mut().zip(own.chunks_exact(2)) {
                        *span = Span {
                            first: ends[0],
                            last: ends[1],
                        };
                    }
                    both
                });
                spans.collect()
            }
        };
        let blocks = sensing.wide.map(|cells| {
            let cells = cells.map(usize::from);
            cells[..axes.min(2)].to_vec()
        });
        let overview = |name: &str, wanted: bool, without: &str| -> PyResult<Vec<f32>> {
            match (
                blocks.as_ref().filter(|_| wanted),
                given(observation, name)?,
            ) {
                (None, None) => Ok(Vec::new()),
                (None, Some(_)) => Err(superfluous(name, without)),
                (Some(blocks), picture) => {
                    let picture = need(picture, name, blocks)?;
                    let (shape, mut cells) = values::<f32>(name, &picture)?;
                    // One picture for all of them.
                    if shape == *blocks {
                        cells = cells.repeat(position.len());
                    } else {
                        fits(name, &shape, &each(blocks))?;
                    }
                    Ok(cells)
                }
            }
        };
        let wide_field = overview("wide_field", true, "looks at its window alone")?;
        let wide_target = overview(
            "wide_target",
            sensing.target,
            "has no target, or looks at its window alone",
        )?;
        let time_us = match given(observation, "time_us")? {
            Some(time) => Some(time.extract()?),
            None => None,
        };
        Ok(Self {
            agents,
            time_us,
            shown: Shown {
                now_us: 0,
                position,
                field,
                target,
                inside,
                wide_field,
                wide_target,
            },
        })
    }

    /// What so many agents are shown, at the time it says or else at this.
    fn shown(self, agents: usize, otherwise_us: u64) -> PyResult<Shown> {
        limit::AGENTS
            .check(agents)
            .map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Shown {
            now_us: self.time_us.unwrap_or(otherwise_us),
            ..self.shown
        })
    }
}

/// What a mapping or an object has under a name; nothing if it is not there, or None.
fn given<'py>(observation: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = observation.py();
    let found = match observation.cast::<PyMapping>() {
        Ok(mapping) => mapping.get_item(name),
        Err(_) => observation.getattr(name),
    };
    match found {
        Ok(value) => Ok((!value.is_none()).then_some(value)),
        Err(e) if e.is_instance_of::<PyKeyError>(py) => Ok(None),
        Err(e) if e.is_instance_of::<PyAttributeError>(py) => Ok(None),
        Err(e) => Err(e),
    }
}

fn need<'py>(
    found: Option<Bound<'py, PyAny>>,
    name: &str,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "the observation has no {name}, which the policy needs: an array of shape {shape:?} for each \
             agent; give it under this name, in a mapping or as an attribute"
        ))
    })
}

fn superfluous(name: &str, why: &str) -> PyErr {
    PyValueError::new_err(format!(
        "the observation has a {name} but the policy {why}; leave it out"
    ))
}

fn fits(name: &str, found: &[usize], expected: &[usize]) -> PyResult<()> {
    match found == expected {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "{name} has the shape {found:?} and the policy looks at {expected:?}"
        ))),
    }
}

/// The numbers of an array of this shape.
fn array<T: Element + Copy>(
    name: &str,
    array: Bound<'_, PyAny>,
    expected: &[usize],
) -> PyResult<Vec<T>> {
    let (shape, values) = values::<T>(name, &array)?;
    fits(name, &shape, expected)?;
    Ok(values)
}
