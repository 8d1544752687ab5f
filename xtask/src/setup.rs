//! The tools that the firmware, the page, the fuzzer, Miri and the audit of dependencies need: found, or installed where that is allowed.

use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    command::{say, succeed},
    firmware::built_apart,
};

/// What a Cortex-M4F or M7 is called by rustc: the core of most nodes.
pub const TARGET: &str = "thumbv7em-none-eabihf";

/// What a Cortex-M33 is called.
pub const TARGET_M33: &str = "thumbv8m.main-none-eabihf";

/// What a core of RISC-V without floats is called.
pub const TARGET_RV32: &str = "riscv32imac-unknown-none-elf";

/// All of them.
const TARGETS: [&str; 3] = [TARGET, TARGET_M33, TARGET_RV32];

/// What a browser's machine is called.
pub const TARGET_WASM: &str = "wasm32-unknown-unknown";

/// The C compiler for it. No C library is needed.
pub const C_COMPILER: &str = "arm-none-eabi-gcc";

/// The emulators of the nodes' boards, and the packages of Debian's that have them.
const EMULATORS: [&str; 2] = ["qemu-system-arm", "qemu-system-riscv32"];
const EMULATOR_PACKAGES: [&str; 2] = ["qemu-system-arm", "qemu-system-misc"];

/// A rustc that carries no library for the target but can compile it from source.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
/// The oldest compiler the workspace can be built with.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// A compiler for the nodes' cores.
#[derive(Debug, Clone)]
pub enum Toolchain {
    /// The one that runs us: it has the cores' libraries.
    Current,
    /// Debian's, which compiles the core library from source; linked with `linker`.
    Debian {
        /// An LLD.
        linker: PathBuf,
    },
}

impl Toolchain {
    /// In a few words.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Current => "the active toolchain",
            Self::Debian { .. } => "Debian's rustc-web, core built from source",
        }
    }

    /// `cargo <command>` for most nodes' core, with what it builds in `folder`.
    pub fn cargo(&self, command: &str, folder: &Path) -> Command {
        self.cargo_for(TARGET, command, folder)
    }

    /// `cargo <command>` for a core, with what it builds in `folder`.
    pub fn cargo_for(&self, target: &str, command: &str, folder: &Path) -> Command {
        let mut cargo = match self {
            Self::Current => {
                let mut cargo = crate::stages::cargo();
                cargo.arg(command);
                cargo
            }
            Self::Debian { linker } => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                cargo
                    .args([command, "-Z", "build-std=core"])
                    .env("RUSTC", DEBIAN_RUSTC)
                    // build-std is unstable; a stable compiler takes it with this.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER", linker)
                    .env("CARGO_TARGET_THUMBV8M_MAIN_NONE_EABIHF_LINKER", linker)
                    .env("CARGO_TARGET_RISCV32IMAC_UNKNOWN_NONE_ELF_LINKER", linker)
                    // Left by the cargo that runs us, and meant for its own compiler.
                    .env_remove("LD_LIBRARY_PATH")
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("RUSTDOC");
                cargo
            }
        };
        cargo.args(["--target", target, "--target-dir"]).arg(folder);
        cargo.arg("--config").arg(without_paths(folder));
        cargo
    }
}

/// A setting by which what is compiled says nothing of the folders on this machine. A panic tells its source file:
/// with where that lies an image would be a kilobyte or two larger, and how much depended on who builds it.
fn without_paths(folder: &Path) -> String {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.unwrap_or_default().join("registry/src");
    // The folder of crates.io; where it is called something else, that stays.
    let crates_io = sources.join("index.crates.io-1949cf8c6b5b557f");
    let flags = [&sources, &crates_io, folder].map(|path| {
        let path = path.display().to_string();
        format!("--remap-path-prefix={path}=")
    });
    format!("target.'cfg(target_os = \"none\")'.rustflags = {flags:?}")
}

/// Finds a compiler for the nodes' cores, or installs one.
pub fn toolchain() -> Result<Toolchain> {
    if let Some(found) = find_toolchain() {
        return Ok(found);
    }
    let targets = TARGETS.join(" ");
    say!("not every compiler for {targets} yet: asking rustup for the targets");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add"]).args(TARGETS);
    if succeeds_within(&mut rustup, Duration::from_secs(120))
        && let Some(found) = find_toolchain()
    {
        return Ok(found);
    }
    let mut packages = DEBIAN_PACKAGES.to_vec();
    if linker().is_none() {
        packages.push("lld");
    }
    apt_install(&packages, || find_toolchain().is_some()).with_context(|| {
        format!(
            "not every compiler for the nodes' cores: run `rustup target add {targets}`, or on Debian \
             `apt-get install {}` (version {OLDEST} or newer)",
            packages.join(" ")
        )
    })?;
    find_toolchain().context("the compiler was there a moment ago")
}

/// Whether the compiler that runs us has a target's library.
fn has_target(target: &str) -> bool {
    let sysroot = sysroot(Path::new("rustc"));
    sysroot.is_some_and(|root| root.join("lib/rustlib").join(target).join("lib").is_dir())
}

/// Finds the library of a browser's machine, or asks rustup for it.
pub fn wasm_target() -> Result<()> {
    if has_target(TARGET_WASM) {
        return Ok(());
    }
    say!("no compiler for {TARGET_WASM} yet: asking rustup for the target");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET_WASM]);
    if succeeds_within(&mut rustup, Duration::from_secs(120)) && has_target(TARGET_WASM) {
        return Ok(());
    }
    bail!("no compiler for {TARGET_WASM}: run `rustup target add {TARGET_WASM}`")
}

fn find_toolchain() -> Option<Toolchain> {
    if TARGETS.into_iter().all(has_target) {
        return Some(Toolchain::Current);
    }
    let debian = Path::new(DEBIAN_RUSTC);
    let source = sysroot(debian)?.join("lib/rustlib/src/rust/library/core");
    let usable = Path::new(DEBIAN_CARGO).exists() && source.is_dir() && is_recent(debian);
    usable
        .then(linker)
        .flatten()
        .map(|linker| Toolchain::Debian { linker })
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    answer(rustc, &["--print", "sysroot"]).map(PathBuf::from)
}

/// Whether this compiler is one the workspace can be built with.
fn is_recent(rustc: &Path) -> bool {
    // "rustc 1.96.0 (…)"
    let version = answer(rustc, &["--version"]);
    let number = version.as_deref().and_then(|v| v.split(' ').nth(1));
    let parts = |number: &str| -> Option<(u32, u32)> {
        let (major, rest) = number.split_once('.')?;
        let minor = rest.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    number.and_then(parts) >= parts(OLDEST)
}

/// What a compiler says about itself.
fn answer(compiler: &Path, question: &[&str]) -> Option<String> {
    let mut compiler = Command::new(compiler);
    compiler.args(question).env_remove("LD_LIBRARY_PATH");
    let output = compiler.output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The LLD that every rustup toolchain carries, or one on the path.
fn linker() -> Option<PathBuf> {
    let libraries = sysroot(Path::new("rustc"))?.join("lib/rustlib");
    let carried = std::fs::read_dir(libraries)
        .ok()?
        .flatten()
        .map(|host| host.path().join("bin/rust-lld"))
        .find(|lld| lld.is_file());
    carried
        .or_else(|| on_path("rust-lld"))
        .or_else(|| on_path("ld.lld"))
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Finds the emulators, or installs them.
pub fn emulator() -> Result<()> {
    let found = || {
        EMULATORS
            .into_iter()
            .all(|program| on_path(program).is_some())
    };
    if found() {
        return Ok(());
    }
    apt_install(&EMULATOR_PACKAGES, found).with_context(|| {
        format!(
            "no {} on the path: on Debian run `apt-get install {}`",
            EMULATORS.join(" or "),
            EMULATOR_PACKAGES.join(" ")
        )
    })
}

/// The compiler for what runs on the node's core but is not Rust.
pub const CPP_COMPILER: &str = "arm-none-eabi-g++";
const CPP_PACKAGES: [&str; 2] = ["gcc-arm-none-eabi", "libstdc++-arm-none-eabi-newlib"];

/// Finds a C++ compiler for the node's core, with its libraries, or installs it.
pub fn cpp_compiler() -> Result<()> {
    let found = || {
        // A compiler without the library answers with the bare name.
        answer(Path::new(CPP_COMPILER), &["-print-file-name=libstdc++.a"])
            .is_some_and(|library| Path::new(&library).is_absolute())
    };
    if found() {
        return Ok(());
    }
    apt_install(&CPP_PACKAGES, found).with_context(|| {
        format!(
            "no {CPP_COMPILER} with its libraries: on Debian run `apt-get install {}`",
            CPP_PACKAGES.join(" ")
        )
    })
}

/// Finds a C compiler for the node's core, or installs it.
pub fn c_compiler() -> Result<()> {
    let found = || on_path(C_COMPILER).is_some();
    if found() {
        return Ok(());
    }
    apt_install(&["gcc-arm-none-eabi"], found).with_context(|| {
        format!("no {C_COMPILER} on the path: on Debian run `apt-get install gcc-arm-none-eabi`")
    })
}

/// Finds CMake and something that it can write files for, or installs them.
pub fn cmake() -> Result<()> {
    let found = || ["cmake", "make"].into_iter().all(|p| on_path(p).is_some());
    if found() {
        return Ok(());
    }
    apt_install(&["cmake", "make"], found)
        .context("no cmake and make on the path: on Debian run `apt-get install cmake make`")
}

/// The oldest Python that the package is for.
const OLDEST_PYTHON: &str = "3.10";

/// Finds a Python that can make environments, or installs it; returns the interpreter.
pub fn python() -> Result<PathBuf> {
    let python = crate::python::interpreter();
    let recent = format!(
        "import ensurepip, venv, sys; sys.exit(sys.version_info < ({}))",
        OLDEST_PYTHON.replace('.', ", ")
    );
    let found = || {
        let mut asked = Command::new(&python);
        succeeds_within(asked.args(["-c", &recent]), Duration::from_secs(60))
    };
    if !found() {
        apt_install(&["python3", "python3-venv"], found).with_context(|| {
            format!(
                "no Python {OLDEST_PYTHON} or newer with venv: on Debian run `apt-get install python3 \
                 python3-venv`, or name one in PYTHON"
            )
        })?;
    }
    Ok(python)
}

/// Finds Node.js with npm, or installs it.
pub fn node() -> Result<()> {
    let found = || on_path("node").is_some() && on_path("npm").is_some();
    if found() {
        return Ok(());
    }
    apt_install(&["nodejs", "npm"], found)
        .context("no Node.js with npm: on Debian run `apt-get install nodejs npm`")
}

/// What Chromium is called.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Finds a Chromium, or installs it; returns the program.
pub fn browser() -> Result<PathBuf> {
    let found = || BROWSERS.iter().find_map(|name| on_path(name));
    if let Some(browser) = found() {
        return Ok(browser);
    }
    apt_install(&["chromium"], || found().is_some())
        .context("no Chromium: on Debian run `apt-get install chromium`")?;
    found().context("the browser was there a moment ago")
}

/// Where Vulkan drivers announce themselves.
const VULKAN_DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// Whether there is a Vulkan driver.
pub fn has_vulkan() -> bool {
    let entries = VULKAN_DRIVERS.iter().filter_map(|f| fs::read_dir(f).ok());
    entries.flatten().next().is_some()
}

/// Finds a Vulkan driver, or installs Mesa's, which has one that needs no GPU.
pub fn vulkan() -> Result<()> {
    if has_vulkan() {
        return Ok(());
    }
    apt_install(&["mesa-vulkan-drivers", "libvulkan1"], has_vulkan)
        .context("no Vulkan driver: on Debian run `apt-get install mesa-vulkan-drivers libvulkan1`")
}

/// What a Slurm of one node is made of.
const SLURM: [&str; 5] = ["munged", "slurmctld", "slurmd", "sbatch", "sinfo"];
const SLURM_PACKAGES: [&str; 4] = ["munge", "slurmctld", "slurmd", "slurm-client"];

/// Finds Slurm, or installs it.
pub fn slurm() -> Result<()> {
    let found = || SLURM.into_iter().all(|program| on_path(program).is_some());
    if found() {
        return Ok(());
    }
    apt_install(&SLURM_PACKAGES, found).with_context(|| {
        format!(
            "no Slurm: on Debian run `apt-get install {}`",
            SLURM_PACKAGES.join(" ")
        )
    })
}

/// What trainings on several processes are built with, and started by.
const MPI_PACKAGES: [&str; 3] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"];

/// Whether there is an MPI that programs can be built with and started by, and what reads its headers.
pub fn has_mpi() -> bool {
    on_path("mpirun").is_some() && on_path("mpicc").is_some() && has_libclang()
}

/// Whether there is a libclang where bindgen looks: where it is told to, or among LLVM's and the system's
/// libraries.
fn has_libclang() -> bool {
    let told = env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let llvm = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = llvm.map(|entry| entry.path().join("lib"));
    let usual = [env::consts::ARCH.to_owned() + "-linux-gnu", String::new()];
    let usual = usual.map(|folder| Path::new("/usr/lib").join(folder));
    let mut folders = told.into_iter().chain(llvm).chain(usual);
    folders.any(|folder| {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = files.map(|file| file.file_name());
        names.any(|name| {
            let name = name.to_string_lossy();
            name.starts_with("libclang") && !name.contains("cpp") && name.contains(".so")
        })
    })
}

/// Finds an MPI with all it takes to build with it, or installs it.
pub fn mpi() -> Result<()> {
    if has_mpi() {
        return Ok(());
    }
    apt_install(&MPI_PACKAGES, has_mpi).with_context(|| {
        format!(
            "no MPI with its headers, or no libclang to read them: on Debian run `apt-get install {}`",
            MPI_PACKAGES.join(" ")
        )
    })
}

/// The fuzzer's driver, in a version that is known to do what is asked of it.
const CARGO_FUZZ: &str = "0.13.2";

/// Finds `cargo-fuzz`, or installs it beside what is built, and a C++ compiler for libFuzzer;
/// returns the program.
pub fn fuzzer() -> Result<PathBuf> {
    let compiler = || on_path("c++").is_some();
    if !compiler() {
        apt_install(&["g++"], compiler)
            .context("libFuzzer needs a C++ compiler: on Debian run `apt-get install g++`")?;
    }
    cargo_tool("cargo-fuzz", CARGO_FUZZ)
}

/// What judges dependencies, in a version that understands deny.toml.
const CARGO_DENY: &str = "0.20.2";

/// Finds `cargo-deny`, or installs it beside what is built; returns the program.
pub fn cargo_deny() -> Result<PathBuf> {
    cargo_tool("cargo-deny", CARGO_DENY)
}

/// Finds a program for cargo, or installs it beside what is built.
fn cargo_tool(name: &str, version: &str) -> Result<PathBuf> {
    if let Some(found) = on_path(name) {
        return Ok(found);
    }
    let tools = built_apart("tools");
    let installed = tools.join("bin").join(name);
    if !installed.is_file() {
        let mut install = crate::stages::cargo();
        install
            // These run for seconds: optimising them would take longer.
            .args(["install", "--debug", "--locked", name])
            .args(["--version", version])
            .arg("--root")
            .arg(&tools)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        succeed(&mut install).with_context(|| format!("cannot install {name}"))?;
    }
    Ok(installed)
}

/// Finds a nightly toolchain with Miri, or asks rustup for it, and prepares its standard library.
pub fn miri() -> Result<()> {
    let patience = Duration::from_secs(300);
    let prepared = || succeeds_within(&mut crate::sanitize::miri("setup"), patience);
    if prepared() {
        return Ok(());
    }
    say!("no nightly toolchain with Miri yet: asking rustup for it");
    let mut install = Command::new("rustup");
    // To the nightly that is there: another one is for its owner to choose.
    install.args(["component", "add", "--toolchain", "nightly"]);
    install.args(["miri", "rust-src"]);
    if succeeds_within(&mut install, patience) && prepared() {
        return Ok(());
    }
    bail!(
        "no nightly toolchain with Miri: run `rustup toolchain install nightly --component miri \
         --component rust-src`"
    )
}

/// What the compiler calls this machine.
pub fn host() -> Result<String> {
    answer(Path::new("rustc"), &["-vV"])
        .and_then(|version| Some(version.split_once("host: ")?.1.lines().next()?.to_owned()))
        .context("`rustc -vV` does not name the host")
}

/// Installs Debian packages until `done`, if we are root on a machine that has apt.
fn apt_install(packages: &[&str], done: impl Fn() -> bool) -> Result<()> {
    if on_path("apt-get").is_none() {
        bail!("this machine has no apt-get");
    }
    if !is_root() {
        bail!("installing with apt-get needs root");
    }
    // One at a time, whichever lane asks: apt does not wait for its own lock.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _alone = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    say!("installing {}", packages.join(" "));
    let patience = Duration::from_secs(600);
    let apt = |words: &[&str]| succeeds_within(Command::new("apt-get").args(words), patience);
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    if apt(&install) && done() {
        return Ok(());
    }
    // The machine may not have the package lists yet, or old ones.
    apt(&["update"]);
    if apt(&install) && done() {
        return Ok(());
    }
    bail!("apt-get install {} did not give it", packages.join(" "))
}

/// Whether we may do what only root may.
pub fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs a command that must neither ask nor hang.
pub fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    command
        .stdin(Stdio::null())
        .env("DEBIAN_FRONTEND", "noninteractive");
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(100)),
            Err(_) => break,
        }
    }
    stop(&mut child);
    false
}

fn stop(child: &mut Child) {
    // An error means that it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}
