//! `cargo xtask cluster`: what a cluster's own scheduler needs to run a campaign in shards: files for Slurm
//! and for Kubernetes, which start `agent-sim campaign --shard` and, when all are done, the same without.

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::{say, succeed_in},
    firmware::{root, target},
    programs::Build,
    slurm::Slurm,
};

/// Where jobs find the program: in this variable, or on the path.
const PROGRAM: &str = "AGENT_SIM";

#[derive(Subcommand)]
pub enum Cluster {
    /// A Slurm array, a task for each shard, and a job that writes the results after it.
    #[command(after_help = "\
Example:
  cargo xtask cluster slurm examples/campaigns/heat-1d.toml --shards 64 --cores 8 -- --runs 100000")]
    Slurm(Shared),
    /// A Kubernetes indexed Job, an index for each shard, and a Job that writes the results after it.
    #[command(after_help = "\
Example:
  cargo xtask cluster kubernetes examples/campaigns/heat-1d.toml --image registry.example/fieldswarm")]
    Kubernetes {
        #[command(flatten)]
        shared: Shared,
        /// Image with agent-sim on its path.
        #[arg(long, default_value = "fieldswarm")]
        image: String,
        /// Volume claim that all pods can write to [default: a new one].
        #[arg(long)]
        claim: Option<String>,
    },
    /// Run a small campaign on this machine as the files for Slurm say, with bash, and in a Slurm of one node
    /// where that can be had.
    Try,
}

/// What is asked of any cluster.
#[derive(Args)]
pub struct Shared {
    /// The campaign's file, as the programs are to find it from where jobs are submitted.
    campaign: PathBuf,
    /// Programs that share its runs.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    shards: u32,
    /// Cores of each.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// Memory of each, in MiB.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
    /// Hours that each may take; what is cut off goes on when it is submitted again.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    hours: u32,
    /// Where the files are written [default: out/cluster-NAME].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// What agent-sim campaign is told besides.
    #[arg(last = true, value_name = "ARGUMENT")]
    more: Vec<String>,
}

/// Writes what was asked for and says how it is submitted.
pub fn run(cluster: &Cluster, build: Build) -> Result<()> {
    let submit = match cluster {
        Cluster::Slurm(shared) => {
            let jobs = Jobs::of(shared)?;
            jobs.write("shards.sh", &jobs.slurm_shards())?;
            jobs.write("finish.sh", &jobs.slurm_finish())?;
            jobs.slurm_submit()
        }
        Cluster::Kubernetes {
            shared,
            image,
            claim,
        } => {
            let jobs = Jobs::of(shared)?;
            let pods = Pods {
                jobs: &jobs,
                image: plain(image)?,
                claim: claim.as_deref().map(plain).transpose()?,
            };
            let text = fs::read_to_string(&shared.campaign)?;
            jobs.write("shards.yaml", &pods.shards(&text)?)?;
            jobs.write("finish.yaml", &pods.finish())?;
            pods.submit()
        }
        Cluster::Try => {
            by_hand(build)?;
            return match Slurm::start() {
                Ok(slurm) => in_slurm(&slurm, build),
                Err(error) => {
                    say!("not in Slurm: {error:#}");
                    Ok(())
                }
            };
        }
    };
    say!("{submit}");
    Ok(())
}

/// What files of jobs hold of people's own: words that no shell and no YAML reads as anything else.
fn plain(word: &str) -> Result<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+/=:,@".contains(c);
    ensure!(
        !word.is_empty() && !word.starts_with(['=', ',', '@', ':']) && word.chars().all(plain),
        "'{word}' cannot stand in a job's file: use letters, digits and ._-+/=:,@"
    );
    Ok(word)
}

fn plain_path(path: &Path) -> Result<&str> {
    plain(
        path.to_str()
            .with_context(|| format!("{} is no text", path.display()))?,
    )
}

/// The jobs of one campaign.
struct Jobs<'a> {
    shared: &'a Shared,
    /// What schedulers show: lower-case letters, digits and hyphens.
    name: String,
    campaign: &'a str,
    folder: PathBuf,
    more: String,
}

impl<'a> Jobs<'a> {
    fn of(shared: &'a Shared) -> Result<Self> {
        let campaign = plain_path(&shared.campaign)?;
        ensure!(
            shared.campaign.is_file(),
            "there is no file {campaign}; give a campaign, like examples/campaigns/heat-1d.toml"
        );
        let stem = shared.campaign.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.context("a campaign's file has a name")?.to_lowercase();
        let name: String = stem
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(40)
            .collect();
        let mut more = String::new();
        for word in &shared.more {
            let mut taken = ["--out", "--shard", "--threads"].into_iter();
            if let Some(taken) = taken.find(|taken| word.starts_with(taken)) {
                bail!("{taken} is the jobs' own to say: leave it out");
            }
            more += &format!(" {}", plain(word)?);
        }
        let name = format!("campaign-{}", name.trim_matches('-'));
        let folder = match &shared.output {
            Some(folder) => folder.clone(),
            None => PathBuf::from(format!("out/cluster-{stem}")),
        };
        plain_path(&folder)?;
        Ok(Self {
            shared,
            name,
            campaign,
            folder,
            more,
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        let written = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, text));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        say!("{}", path.display());
        Ok(())
    }

    /// The command that every job runs, but for which shard.
    fn command(&self, campaign: &str, threads: &str) -> String {
        let Self { name, more, .. } = self;
        format!("campaign {campaign} --out out/{name} --threads {threads}{more}")
    }

    fn slurm(&self, name: &str, besides: &str, log: &str, shard: &str) -> String {
        let Shared {
            cores,
            memory,
            hours,
            ..
        } = self.shared;
        let folder = self.folder.display();
        let command = self.command(self.campaign, "\"$SLURM_CPUS_PER_TASK\"");
        format!(
            "#!/bin/bash\n\
             #SBATCH --job-name={name}\n\
             {besides}\
             #SBATCH --cpus-per-task={cores}\n\
             #SBATCH --mem={memory}M\n\
             #SBATCH --time={hours}:00:00\n\
             #SBATCH --output={folder}/{log}.log\n\
             exec \"${{{PROGRAM}:-agent-sim}}\" {command}{shard}\n"
        )
    }

    fn slurm_shards(&self) -> String {
        let shards = self.shared.shards;
        // A node that fails takes a shard with it; the shard goes on elsewhere with what it has kept.
        let array = format!("#SBATCH --array=1-{shards}\n#SBATCH --requeue\n");
        let shard = format!(" --shard \"$SLURM_ARRAY_TASK_ID/{shards}\"");
        self.slurm(&self.name, &array, "shard-%a", &shard)
    }

    fn slurm_finish(&self) -> String {
        // Not to wait for ever for a shard that has failed.
        let besides = "#SBATCH --kill-on-invalid-dep=yes\n";
        self.slurm(&format!("{}-finish", self.name), besides, "finish", "")
    }

    fn slurm_submit(&self) -> String {
        let folder = self.folder.display();
        format!(
            "sbatch --dependency=afterok:$(sbatch --parsable {folder}/shards.sh) {folder}/finish.sh"
        )
    }
}

/// The jobs as Kubernetes has them.
struct Pods<'a> {
    jobs: &'a Jobs<'a>,
    image: &'a str,
    claim: Option<&'a str>,
}

/// Most bytes of a file that a ConfigMap takes.
const CONFIG_MAP: usize = 1 << 20;

impl Pods<'_> {
    /// The campaign's file, the volume and the shards.
    fn shards(&self, campaign: &str) -> Result<String> {
        let Jobs { name, shared, .. } = self.jobs;
        ensure!(
            campaign.len() < CONFIG_MAP,
            "{} has {} bytes: a ConfigMap takes less than {CONFIG_MAP}",
            self.jobs.campaign,
            campaign.len()
        );
        let lines: String = (campaign.lines())
            .map(|line| format!("    {line}\n"))
            .collect();
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  {name}.toml: |2\n{lines}---\n"
        );
        let volume = match self.claim {
            Some(_) => String::new(),
            None => format!(
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {name}\nspec:\n  \
                 accessModes: [ReadWriteMany]\n  resources:\n    requests:\n      storage: 1Gi\n---\n"
            ),
        };
        let shards = shared.shards;
        let spec = format!(
            "  completionMode: Indexed\n  completions: {shards}\n  parallelism: {shards}\n  \
             backoffLimit: {}\n",
            3 * shards
        );
        // Indices count from 0.
        let shard = format!(" --shard $((JOB_COMPLETION_INDEX + 1))/{shards}");
        Ok(map + &volume + &self.job("shards", &spec, "OnFailure", &shard))
    }

    /// What writes the results. It is not tried again: it fails where too many runs do.
    fn finish(&self) -> String {
        self.job("finish", "  backoffLimit: 0\n", "Never", "")
    }

    fn job(&self, what: &str, spec: &str, restart: &str, shard: &str) -> String {
        let Jobs { name, shared, .. } = self.jobs;
        let Shared { cores, memory, .. } = shared;
        let (image, claim) = (self.image, self.claim.unwrap_or(name));
        let file = format!("/campaign/{name}.toml");
        let command = self.jobs.command(&file, &cores.to_string());
        format!(
            "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}-{what}
spec:
{spec}  activeDeadlineSeconds: {}
  template:
    spec:
      restartPolicy: {restart}
      containers:
        - name: agent-sim
          image: {image}
          workingDir: /work
          command: [\"sh\", \"-c\", \"exec agent-sim {command}{shard}\"]
          resources:
            requests: {{cpu: {cores}, memory: {memory}Mi}}
            limits: {{memory: {memory}Mi}}
          volumeMounts:
            - {{name: work, mountPath: /work}}
            - {{name: campaign, mountPath: /campaign}}
      volumes:
        - name: work
          persistentVolumeClaim: {{claimName: {claim}}}
        - name: campaign
          configMap: {{name: {name}}}
",
            u64::from(shared.hours) * 3600
        )
    }

    fn submit(&self) -> String {
        let Jobs {
            name,
            folder,
            shared,
            ..
        } = self.jobs;
        let folder = folder.display();
        format!(
            "kubectl apply -f {folder}/shards.yaml && kubectl wait --for=condition=complete --timeout={}h \
             job/{name}-shards && kubectl apply -f {folder}/finish.yaml",
            shared.hours
        )
    }
}

/// A campaign that takes seconds.
const SMALL: &str = "examples/campaigns/heat-1d.toml";
/// What it is called where it is run.
const SMALL_FILE: &str = "small.toml";
const SMALL_RUNS: &str = "--runs=24";
const SMALL_SHARDS: u32 = 4;

/// A folder with files of jobs for a small campaign, and what one program makes of it.
struct Trial {
    folder: PathBuf,
    shared: Shared,
    program: PathBuf,
}

impl Trial {
    fn prepare(name: &str, build: Build) -> Result<Self> {
        let folder = target().join("cluster").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fs::copy(root().join(SMALL), folder.join(SMALL_FILE))?;
        let shared = Shared {
            campaign: PathBuf::from(SMALL_FILE),
            shards: SMALL_SHARDS,
            cores: 1,
            memory: 256,
            hours: 1,
            output: None,
            more: Vec::new(),
        };
        let program = build.path("agent-sim", "agent-sim")?;
        Ok(Self {
            folder,
            shared,
            program,
        })
    }

    /// Writes the jobs' files; returns the line that submits them.
    fn write(&self) -> Result<String> {
        let jobs = Jobs {
            campaign: SMALL_FILE,
            name: "campaign-small".to_owned(),
            folder: self.folder.join("jobs"),
            more: format!(" {SMALL_RUNS}"),
            shared: &self.shared,
        };
        jobs.write("shards.sh", &jobs.slurm_shards())?;
        jobs.write("finish.sh", &jobs.slurm_finish())?;
        Ok(jobs.slurm_submit())
    }

    /// Holds the results against those of one program that shares with nobody.
    fn compare(&self) -> Result<()> {
        let mut alone = Command::new(&self.program);
        alone.args(["campaign", SMALL_FILE, "--out", "alone/campaign-small"]);
        succeed_or_judge(&self.folder, alone.arg(SMALL_RUNS))?;
        for name in ["runs.jsonl", "runs.csv", "campaign.json"] {
            let read = |out: &str| {
                let path = self.folder.join(out).join("campaign-small").join(name);
                fs::read(&path).with_context(|| format!("there is no {}", path.display()))
            };
            ensure!(
                read("alone")? == read("out")?,
                "{name} of {SMALL_SHARDS} shards is not that of one program; both are in {}",
                self.folder.display()
            );
        }
        Ok(())
    }
}

/// Runs a campaign, which ends with 1 where too many runs fail: that is no mistake of the jobs.
fn succeed_or_judge(folder: &Path, command: &mut Command) -> Result<()> {
    let ended = command.current_dir(folder).output()?;
    ensure!(
        matches!(ended.status.code(), Some(0 | 1)),
        "{command:?} ended with {}: {}",
        ended.status,
        String::from_utf8_lossy(&ended.stderr)
    );
    Ok(())
}

/// Runs the scripts as Slurm would, one after the other.
pub fn by_hand(build: Build) -> Result<()> {
    let trial = Trial::prepare("by-hand", build)?;
    trial.write()?;
    let job = |script: &str| {
        let mut bash = Command::new("bash");
        bash.arg(format!("jobs/{script}"))
            .env("SLURM_CPUS_PER_TASK", "1");
        bash.env(PROGRAM, &trial.program);
        bash
    };
    for task in 1..=SMALL_SHARDS {
        let mut shard = job("shards.sh");
        shard.env("SLURM_ARRAY_TASK_ID", task.to_string());
        succeed_in(&trial.folder, &mut shard)?;
    }
    succeed_or_judge(&trial.folder, &mut job("finish.sh"))?;
    trial.compare()
}

/// Submits the scripts to a Slurm as one is told to.
pub fn in_slurm(slurm: &Slurm, build: Build) -> Result<()> {
    let trial = Trial::prepare("in-slurm", build)?;
    let submit = trial.write()?;
    // That comes back when all is done.
    let submit = submit.replacen("sbatch ", "sbatch --wait ", 1);
    let mut bash = Command::new("bash");
    bash.args(["-c", &submit]).env(PROGRAM, &trial.program);
    slurm.run(&trial.folder, &mut bash)?;
    trial.compare()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::os::unix::fs::PermissionsExt;
    use yaml_rust2::{Yaml, YamlLoader};

    #[derive(Parser)]
    struct Words {
        #[command(subcommand)]
        cluster: Cluster,
    }

    fn written(words: &str) -> Result<()> {
        let words = ["cluster"].into_iter().chain(words.split_whitespace());
        run(&Words::try_parse_from(words)?.cluster, Build::Tested)
    }

    /// A folder with a campaign and a program that says what it was told.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("cluster-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::copy(root().join(SMALL), folder.join("my_Field.toml")).unwrap();
        let program = folder.join("agent-sim");
        fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn said(folder: &Path, command: &mut Command) -> String {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", folder.display()));
        let ended = command.current_dir(folder).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn scripts_for_slurm_start_each_shard_once_and_then_the_whole() {
        let folder = folder("slurm");
        let (path, out) = (folder.display(), folder.join("jobs"));
        let words =
            format!("slurm {path}/my_Field.toml --shards 5 --cores 3 -o {path}/jobs -- --runs 9");
        written(&words).unwrap();
        let plain = format!(
            "campaign {path}/my_Field.toml --out out/campaign-my-field --threads 3 --runs 9"
        );
        let mut bash = Command::new("bash");
        bash.arg(out.join("shards.sh"))
            .env("SLURM_CPUS_PER_TASK", "3");
        bash.env("SLURM_ARRAY_TASK_ID", "4");
        assert_eq!(said(&folder, &mut bash), format!("{plain} --shard 4/5"));
        let mut bash = Command::new("bash");
        bash.arg(out.join("finish.sh"))
            .env("SLURM_CPUS_PER_TASK", "3");
        assert_eq!(said(&folder, &mut bash), plain);
        let shards = fs::read_to_string(out.join("shards.sh")).unwrap();
        for line in [
            "#SBATCH --array=1-5",
            "#SBATCH --cpus-per-task=3",
            "#SBATCH --mem=2048M",
        ] {
            assert!(shards.lines().any(|l| l == line), "{shards}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn jobs_for_kubernetes_are_yaml_and_start_each_shard_once_and_then_the_whole() {
        let folder = folder("kubernetes");
        let (path, out) = (folder.display(), folder.join("jobs"));
        let words = format!(
            "kubernetes {path}/my_Field.toml --shards 5 --cores 3 -o {path}/jobs -- --runs 9"
        );
        written(&words).unwrap();
        let read = |name: &str| {
            let text = fs::read_to_string(out.join(name)).unwrap();
            YamlLoader::load_from_str(&text).unwrap()
        };
        let kinds = |files: &[Yaml]| -> Vec<String> {
            files
                .iter()
                .map(|file| file["kind"].as_str().unwrap().to_owned())
                .collect()
        };
        let container = |job: &Yaml| job["spec"]["template"]["spec"]["containers"][0].clone();
        let told = |job: &Yaml, index: &str| {
            let words = container(job)["command"].clone();
            let words: Vec<&str> = words
                .as_vec()
                .unwrap()
                .iter()
                .map(|w| w.as_str().unwrap())
                .collect();
            let mut command = Command::new(words[0]);
            said(
                &folder,
                command.args(&words[1..]).env("JOB_COMPLETION_INDEX", index),
            )
        };
        let plain = "campaign /campaign/campaign-my-field.toml --out out/campaign-my-field --threads 3 --runs 9";
        let shards = read("shards.yaml");
        assert_eq!(
            kinds(&shards),
            ["ConfigMap", "PersistentVolumeClaim", "Job"]
        );
        let campaign = fs::read_to_string(root().join(SMALL)).unwrap();
        assert_eq!(
            shards[0]["data"]["campaign-my-field.toml"].as_str(),
            Some(&*campaign)
        );
        assert_eq!(
            shards[1]["spec"]["accessModes"][0].as_str(),
            Some("ReadWriteMany")
        );
        let spec = &shards[2]["spec"];
        assert_eq!(spec["completionMode"].as_str(), Some("Indexed"));
        assert_eq!(
            (spec["completions"].as_i64(), spec["parallelism"].as_i64()),
            (Some(5), Some(5))
        );
        let requests = &container(&shards[2])["resources"]["requests"];
        assert_eq!(
            (requests["cpu"].as_i64(), requests["memory"].as_str()),
            (Some(3), Some("2048Mi"))
        );
        let claim = &spec["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        assert_eq!(claim.as_str(), Some("campaign-my-field"));
        assert_eq!(told(&shards[2], "0"), format!("{plain} --shard 1/5"));
        assert_eq!(told(&shards[2], "4"), format!("{plain} --shard 5/5"));
        let finish = read("finish.yaml");
        assert_eq!(kinds(&finish), ["Job"]);
        assert_eq!(finish[0]["spec"]["backoffLimit"].as_i64(), Some(0));
        assert_eq!(told(&finish[0], "0"), plain);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_job_files_cannot_say_is_refused() {
        let folder = folder("refused");
        let path = folder.display();
        for (words, said) in [
            ("slurm none.toml", "there is no file none.toml"),
            ("slurm FILE --shards 0", "0 is not in 1..=10000"),
            ("slurm FILE -o a;b", "'a;b' cannot stand in a job's file"),
            ("slurm FILE -- --seed $(id)", "'$(id)' cannot stand"),
            ("slurm FILE -- --shard 1/2", "--shard is the jobs' own"),
            ("kubernetes FILE --image x{y", "'x{y' cannot stand"),
        ] {
            let words = words.replace("FILE", &format!("{path}/my_Field.toml"));
            let error = written(&words).unwrap_err().to_string();
            assert!(error.contains(said), "{words}: {error}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
