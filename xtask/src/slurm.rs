//! A Slurm of one node, this machine, for as long as a test needs it: daemons of its own, on ports and in a
//! folder of its own.

use anyhow::{Context, Result, bail, ensure};
use ed25519_compact::Seed;
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::setup::{self, succeeds_within};

/// How long daemons may take to come up or to go, and jobs to end.
const PATIENCE: Duration = Duration::from_secs(30);
const JOBS: Duration = Duration::from_secs(120);

/// It, running. Dropping it ends its daemons and removes its folder.
pub struct Slurm {
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts one, after installing what it needs where that is allowed. Fails where a machine does not let
    /// it: Slurm's daemons are root's.
    pub fn start() -> Result<Self> {
        setup::slurm()?;
        ensure!(setup::is_root(), "Slurm's daemons need root");
        // Paths of sockets must be short: not among what is built.
        let folder = std::env::temp_dir().join(format!("slurm-{}", std::process::id()));
        // Nobody else may have made it.
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut slurm = Self {
            folder,
            daemons: Vec::new(),
        };
        slurm.begin()?;
        Ok(slurm)
    }

    fn begin(&mut self) -> Result<()> {
        let folder = self.folder.display().to_string();
        for name in ["state", "spool"] {
            fs::create_dir(self.folder.join(name))?;
        }
        let key = self.folder.join("key");
        fs::write(&key, *Seed::generate())?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400))?;
        fs::write(self.configuration(), configuration(&folder)?)?;
        let munge: Vec<String> = [
            ("socket", "munge"),
            ("key-file", "key"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "seed"),
        ]
        .map(|(option, name)| format!("--{option}={folder}/{name}"))
        .into();
        let mut munged = Command::new("munged");
        self.daemon(munged.args(["--foreground", "--force"]).args(munge))?;
        let socket = self.folder.join("munge");
        self.wait_for("munged", || socket.exists())?;
        let configuration = self.configuration();
        let mut controller = Command::new("slurmctld");
        self.daemon(controller.args(["-D", "-f"]).arg(&configuration))?;
        let mut node = Command::new("slurmd");
        self.daemon(
            node.args(["-D", "-N", "localhost", "-f"])
                .arg(&configuration),
        )?;
        self.wait_for("a node", || {
            let mut ask = self.client("sinfo");
            let answer = ask
                .args(["--noheader", "--format=%T"])
                .stderr(Stdio::null())
                .output();
            answer.is_ok_and(|answer| answer.stdout.trim_ascii() == b"idle")
        })
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    fn client(&self, program: &str) -> Command {
        let mut client = Command::new(program);
        client.env("SLURM_CONF", self.configuration());
        client
    }

    fn daemon(&mut self, command: &mut Command) -> Result<()> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        self.daemons.push(child);
        Ok(())
    }

    fn wait_for(&self, what: &str, there: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !there() {
            if Instant::now() > deadline {
                bail!("{what} of Slurm does not come up on this machine");
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Runs a command that asks this Slurm for something, until it and its jobs have ended; what its jobs end
    /// with is not looked at.
    pub fn run(&self, folder: &Path, command: &mut Command) -> Result<()> {
        command
            .env("SLURM_CONF", self.configuration())
            .current_dir(folder);
        succeeds_within(command, JOBS);
        let mut queue = self.client("squeue");
        let left = queue.arg("--noheader").output()?;
        ensure!(
            left.status.success() && left.stdout.trim_ascii().is_empty(),
            "jobs did not end in {} s: {}",
            JOBS.as_secs(),
            String::from_utf8_lossy(&left.stdout)
        );
        Ok(())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // In the order in which they depend on each other; an error means that one has ended already.
        for mut daemon in self.daemons.drain(..).rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let deadline = Instant::now() + PATIENCE;
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A Slurm of this machine alone, without accounting and without the kernel's control groups, which
/// containers do not have.
fn configuration(folder: &str) -> Result<String> {
    let cores = thread::available_parallelism()?;
    // Both at a time, so that they differ.
    let ports = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    let [controller, node] = ports.map(|port| port.local_addr().map(|at| at.port()));
    Ok(format!(
        "ClusterName=try
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
SlurmctldPort={}
SlurmdPort={}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=localhost NodeAddr=127.0.0.1 CPUs={cores} RealMemory=1024 State=UNKNOWN
PartitionName=try Nodes=ALL Default=YES State=UP
",
        controller?, node?
    ))
}
