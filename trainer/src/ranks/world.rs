//! The few calls of MPI.

use super::{Ranks, started};
use anyhow::{Context, Result};
use mpi::collective::CommunicatorCollectives;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::{Communicator, SimpleCommunicator};
use mpi::{Count, Threading};
use std::mem;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a rank looks for the others without a pause: shorter than any step, and longer than what
/// they say is on its way.
const EAGER: Duration = Duration::from_micros(200);
/// Then it leaves its core to others, each time for this share of what it has waited, and at most so long.
const PAUSE: u32 = 50;
const LONGEST: Duration = Duration::from_millis(1);

/// How long who leads has to say what was wrong before others end the training.
pub const GRACE: Duration = Duration::from_secs(5);

/// Tells who watches over calls that MPI alone can end: true when one begins, false when it has ended.
static WATCH: OnceLock<Sender<bool>> = OnceLock::new();

/// That this process is one of several. Dropping it waits for the others to drop theirs.
pub struct World {
    _universe: Universe,
    /// They, as this one sees them.
    pub ranks: Ranks,
}

impl World {
    /// Finds the others, where a launcher has started any. From here on a panic ends the process at once:
    /// the launcher sees that and ends the others, which would wait for it otherwise.
    pub fn join(patience: Duration) -> Result<Option<Self>> {
        if started() == 1 {
            return Ok(None);
        }
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)
            .context("MPI has been begun and ended in this process before")?;
        let world = universe.world();
        let here = world.split_shared(world.rank());
        let number = |n: i32| usize::try_from(n).expect("ranks count from 0");
        let ranks = Ranks {
            own: number(world.rank()),
            of: number(world.size()),
            busy: number(world.size()),
            local: number(here.rank()),
            patience,
        };
        let (calls, heard) = channel();
        if WATCH.set(calls).is_ok() {
            let watch = thread::Builder::new().name("watch over MPI".to_owned());
            watch
                .spawn(move || watch_over(&heard, ranks))
                .context("cannot start a thread")?;
        }
        let said = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            said(panic);
            eprintln!(
                "rank {} of {} ends by a mistake of its own, and the others with it; go on with --resume",
                ranks.own, ranks.of
            );
            std::process::abort();
        }));
        Ok(Some(Self {
            _universe: universe,
            ranks,
        }))
    }

    /// How many of the ranks are on this machine.
    pub fn neighbours(&self) -> usize {
        let world = SimpleCommunicator::world();
        world.split_shared(world.rank()).size().max(1) as usize
    }

    /// Ends all of them, whatever they are at.
    pub fn abort(&self) -> ! {
        SimpleCommunicator::world().abort(1)
    }
}

/// Ends this process, and by that all of them, when a call takes longer than ranks are waited for.
fn watch_over(calls: &Receiver<bool>, ranks: Ranks) {
    while calls.recv().is_ok() {
        if calls.recv_timeout(ranks.patience) == Err(RecvTimeoutError::Timeout) {
            match ranks.leads() {
                true => eprintln!("error: {}", ranks.silent()),
                false => thread::sleep(GRACE),
            }
            std::process::abort();
        }
    }
}

/// Says that a call begins, or that it has ended.
fn watched(begins: bool) {
    if let Some(watch) = WATCH.get() {
        // It ends with the process.
        let _ = watch.send(begins);
    }
}

/// Gives everybody's bytes to everybody; `None` where not all are there in time.
pub fn all_gather(own: &[u8], patience: Duration) -> Option<Vec<Vec<u8>>> {
    let world = SimpleCommunicator::world();
    // Most of the time is spent here, where others can have the core and there is a way out.
    let begun = Instant::now();
    let mut arrival = world.immediate_barrier();
    while let Err(waiting) = arrival.test() {
        arrival = waiting;
        let waited = begun.elapsed();
        if waited > patience {
            // It never ends: nobody may wait for it.
            mem::forget(arrival);
            return None;
        }
        match waited < EAGER {
            true => thread::yield_now(),
            false => thread::sleep((waited / PAUSE).min(LONGEST)),
        }
    }
    watched(true);
    let count = |bytes: usize| Count::try_from(bytes).expect("less than 2 GiB is told");
    let mut counts = vec![0; world.size() as usize];
    world.all_gather_into(&count(own.len()), &mut counts[..]);
    let ends = counts.iter().scan(0, |end: &mut Count, count| {
        *end += count;
        Some(*end)
    });
    let ends: Vec<Count> = ends.collect();
    let starts: Vec<Count> = ends.iter().zip(&counts).map(|(end, n)| end - n).collect();
    let mut all = vec![0; *ends.last()? as usize];
    let mut parts = PartitionMut::new(&mut all[..], &counts[..], &starts[..]);
    world.all_gather_varcount_into(own, &mut parts);
    watched(false);
    let part = |(start, end): (&Count, &Count)| all[*start as usize..*end as usize].to_vec();
    Some(starts.iter().zip(&ends).map(part).collect())
}
