//! agent-core for teams that write C: a folder that is a CMake package and a Zephyr module, and a library
//! for Arduino, each as a zip; and a check that each builds.

use anyhow::{Context, Result, bail, ensure};
use std::{fmt::Write as _, fs, path::Path, process::Command};

use crate::{
    c_library::{self, Flavour, POLICY},
    command::{say, succeed, succeed_in},
    firmware::{built_apart, root},
    setup::{CPP_COMPILER, TARGET, TARGET_M33, Toolchain},
};

/// The workspace's, which all crates have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Cores that a package has the library for.
const CORES: [&str; 2] = [TARGET, TARGET_M33];

/// The library, in every package.
const LIBRARY: &str = "libagent_core_c.a";

/// Where Arduino looks for the library of a core: its name, and how it is told to treat floats. These
/// are the names that the cores of UNO R4 and STM32 boards have.
const ARDUINO: [(&str, &str); 3] = [
    ("cortex-m4/fpv4-sp-d16-hard", TARGET),
    ("cortex-m7/fpv4-sp-d16-hard", TARGET),
    ("cortex-m33/fpv4-sp-d16-hard", TARGET_M33),
];

/// Flags for the first of them, as Arduino's compiler gets them.
const ARDUINO_FLAGS: [&str; 4] = c_library::CORE;

/// What an Arduino library must say of itself, by the library specification. Whoever publishes it adds
/// where it is to be had: `url` may be empty here.
const FIELDS: [&str; 9] = [
    "name",
    "version",
    "author",
    "maintainer",
    "sentence",
    "paragraph",
    "category",
    "url",
    "architectures",
];

/// Its categories.
const CATEGORIES: [&str; 9] = [
    "Display",
    "Communication",
    "Signal Input/Output",
    "Sensors",
    "Device Control",
    "Timing",
    "Data Storage",
    "Data Processing",
    "Other",
];

/// Makes the packages, checks that each builds, and says where they are.
pub fn run(toolchain: &Toolchain) -> Result<()> {
    let folder = built_apart("c-packages");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let libraries = folder.join("libraries");
    for core in CORES {
        let library = c_library::library(toolchain, core, Flavour::Small)?;
        strip(&library, &libraries.join(core).join(LIBRARY))?;
    }
    let package = folder.join(format!("agent_core-{VERSION}"));
    cmake_package(&libraries, &package)?;
    let arduino = folder.join("arduino/agent_core");
    arduino_library(&libraries, &arduino)?;

    let checks = folder.join("checks");
    let sources = root().join("agent-core-c");
    let example = sources.join("example");
    check_on_host(&example, &sources, &checks.join("host"))?;
    for core in ["cortex-m4", "cortex-m33"] {
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", package.display());
        cmake_for(core, &example, &checks.join(core), &prefix)?;
    }
    let module = format!("-DMODULE={}", package.display());
    let stand_in = sources.join("tests/zephyr");
    cmake_for("cortex-m4", &stand_in, &checks.join("zephyr"), &module)?;
    check_arduino(&arduino, &checks.join("sketch.elf"))?;

    for (tree, name) in [
        (&package, format!("agent_core-{VERSION}.zip")),
        (&arduino, format!("agent_core-arduino-{VERSION}.zip")),
    ] {
        let zip = folder.join(name);
        compress(tree, &zip)?;
        let kilobytes = fs::metadata(&zip)?.len() / 1000;
        say!("{} ({kilobytes} kB)", zip.display());
    }
    Ok(())
}

/// A library without what only debuggers read.
fn strip(library: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    let mut strip = Command::new("arm-none-eabi-strip");
    succeed(strip.arg("--strip-debug").arg("-o").args([to, library]))
}

/// The folder that CMake and Zephyr take: what the sources have, and the library for each core.
fn cmake_package(libraries: &Path, package: &Path) -> Result<()> {
    let sources = root().join("agent-core-c");
    copy(
        &sources.join("CMakeLists.txt"),
        &package.join("CMakeLists.txt"),
    )?;
    for folder in ["include", "zephyr", "example"] {
        copy(&sources.join(folder), &package.join(folder))?;
    }
    let config = "cmake/agent_core-config.cmake";
    copy(&sources.join(config), &package.join(config))?;
    let version = "cmake/agent_core-config-version.cmake";
    fill_in(
        &sources.join(format!("{version}.in")),
        &package.join(version),
    )?;
    copy(libraries, &package.join("lib"))?;
    licences(package)
}

/// The folder that becomes an Arduino library.
fn arduino_library(libraries: &Path, library: &Path) -> Result<()> {
    let sources = root().join("agent-core-c");
    let properties = "library.properties";
    let template = sources.join("arduino").join(format!("{properties}.in"));
    fill_in(&template, &library.join(properties))?;
    copy(&sources.join("arduino/examples"), &library.join("examples"))?;
    let policy = library.join("examples/HoldALine/policy.h");
    fs::write(policy, as_header(&fs::read(root().join(POLICY))?))?;
    let src = library.join("src");
    copy(&sources.join("include"), &src)?;
    for (place, core) in ARDUINO {
        let from = libraries.join(core).join(LIBRARY);
        copy(&from, &src.join(place).join(LIBRARY))?;
    }
    licences(library)
}

/// A policy as an array in C++.
fn as_header(policy: &[u8]) -> String {
    let mut text = format!("/* {POLICY} */\nalignas(16) const unsigned char policy[] = {{");
    for (place, byte) in policy.iter().enumerate() {
        let before = if place % 20 == 0 { "\n" } else { "" };
        let _ = write!(text, "{before}{byte},");
    }
    text + "\n};\n"
}

fn licences(folder: &Path) -> Result<()> {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &folder.join(name))?;
    }
    Ok(())
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// A file that states the version.
fn fill_in(template: &Path, to: &Path) -> Result<()> {
    let text = fs::read_to_string(template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    fs::create_dir_all(to.parent().context("a file in a folder")?)?;
    Ok(fs::write(to, text.replace("@VERSION@", VERSION))?)
}

fn compress(tree: &Path, zip: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (tree.parent(), tree.file_name()) else {
        bail!("{} is no folder in a folder", tree.display());
    };
    let mut cmake = Command::new("cmake");
    cmake.args(["-E", "tar", "cf"]).arg(zip);
    succeed_in(parent, cmake.arg("--format=zip").arg(name))
}

/// Configures and builds a project.
fn cmake(project: &Path, folder: &Path, options: &[&str]) -> Result<()> {
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(project).arg("-B").arg(folder);
    configure.arg(format!("-DPOLICY={}", root().join(POLICY).display()));
    succeed(configure.args(options))?;
    succeed(Command::new("cmake").arg("--build").arg(folder))
}

/// The same for a core, by the toolchain file beside the example.
fn cmake_for(core: &str, project: &Path, folder: &Path, option: &str) -> Result<()> {
    let toolchain = root().join(format!("agent-core-c/example/{core}.cmake"));
    let toolchain = format!("-DCMAKE_TOOLCHAIN_FILE={}", toolchain.display());
    cmake(project, folder, &[&toolchain, option])
}

/// The example on this machine, with the library that cargo builds when CMake asks for it.
fn check_on_host(example: &Path, sources: &Path, folder: &Path) -> Result<()> {
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", sources.display());
    cmake(example, folder, &[&prefix])?;
    let output = Command::new(folder.join("example")).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.ends_with("done\n"),
        "the example in C ended with {} and wrote: {text}",
        output.status
    );
    Ok(())
}

/// The library as its specification has it, and its sketch as Arduino compiles one, for the first core.
fn check_arduino(library: &Path, elf: &Path) -> Result<()> {
    let properties = fs::read_to_string(library.join("library.properties"))?;
    check_properties(&properties)?;
    let sketch = library.join("examples/HoldALine/HoldALine.ino");
    let board = root().join("agent-core-c/tests/arduino");
    let (place, _) = ARDUINO[0];
    let mut compiler = Command::new(CPP_COMPILER);
    compiler
        .args(ARDUINO_FLAGS)
        .args(["-std=gnu++17", "-Os", "-Wall", "-Wextra", "-Werror"])
        .args([
            "-ffreestanding",
            "-fno-exceptions",
            "-fno-rtti",
            "-nostdlib",
        ])
        .args([
            "-ffunction-sections",
            "-fdata-sections",
            "-Wl,--gc-sections",
        ])
        .args([
            "-Wl,--entry=start",
            "-Wl,-z,noexecstack",
            "-include",
            "Arduino.h",
            "-I",
        ])
        .arg(&board)
        .arg("-I")
        .arg(library.join("src"))
        .args(["-x", "c++"])
        .args([&sketch, &board.join("board.cpp")])
        .args(["-x", "none", "-L"])
        .arg(library.join("src").join(place))
        .args(["-lagent_core_c", "-lgcc", "-o"])
        .arg(elf);
    succeed(&mut compiler).context("the Arduino example does not build")
}

fn check_properties(text: &str) -> Result<()> {
    let value = |field: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| *name == field).map(|(_, v)| v)
    };
    for field in FIELDS {
        let given = value(field).with_context(|| format!("library.properties has no {field}"))?;
        ensure!(
            !given.is_empty() || field == "url",
            "library.properties says nothing of its {field}"
        );
    }
    let category = value("category").unwrap_or_default();
    ensure!(
        CATEGORIES.contains(&category),
        "library.properties has a category that Arduino does not: {category}; it has {}",
        CATEGORIES.join(", ")
    );
    ensure!(
        value("precompiled") == Some("true") && value("ldflags") == Some("-lagent_core_c"),
        "library.properties does not name the precompiled library"
    );
    Ok(())
}
