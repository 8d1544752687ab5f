//! The whole of `reproduce --quick`: every study runs, and leaves files that can be read.

use std::path::Path;
use std::process::{Command, Stdio};
use studies::cell::Figure;
use studies::study::ALL;

/// Runs all studies quickly; what was said on standard error.
fn reproduce(folder: &Path) -> String {
    let mut reproduce = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    reproduce
        .args(["--quick", "--commit", "tested", "--out"])
        .arg(folder.join("results"))
        .arg("--cache")
        .arg(folder.join("cache"));
    let output = reproduce.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Every row has all columns, and figures are numbers, if perhaps infinite ones.
fn check_csv(name: &str, text: &str) {
    let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
    let head = cells(
        lines
            .next()
            .unwrap_or_else(|| panic!("{name}.csv is empty")),
    );
    let mut rows = 0;
    for line in lines {
        let row = cells(line);
        assert_eq!(row.len(), head.len(), "{name}.csv: {line}");
        for (column, cell) in head.iter().zip(&row) {
            if Figure::COLUMNS.contains(&column.as_str()) {
                cell.parse::<f64>()
                    .unwrap_or_else(|e| panic!("{name}.csv: {line}: {e}"));
            }
        }
        rows += 1;
    }
    assert!(rows > 0, "{name}.csv has no rows");
}

#[test]
fn a_quick_run_leaves_pages_tables_and_pictures_of_every_study() {
    let folder = tempfile::tempdir().unwrap();
    reproduce(folder.path());
    let results = folder.path().join("results");
    let read = |file: &str| {
        let text = std::fs::read_to_string(results.join(file));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let index = read("README.md");
    for study in ALL {
        let name = study.name();
        assert!(index.contains(&format!("[{name}]({name}.md)")), "{index}");
        let (page, csv) = (read(&format!("{name}.md")), read(&format!("{name}.csv")));
        for said in [
            "mode: quick",
            "seed: 1",
            "commit: tested",
            "machine: ",
            "heat-1d ",
        ] {
            assert!(page.contains(said) && csv.contains(said), "{name}: {said}");
        }
        assert!(page.contains("\nVerdict: "), "{page}");
        check_csv(name, &csv);
        for link in page.split("](").skip(1) {
            let file = link.split(')').next().unwrap();
            if file.ends_with(".svg") {
                let picture = read(file);
                assert!(picture.trim_end().ends_with("</svg>") && picture.contains("tested"));
            }
        }
    }

    // All of it is stored: a second run computes nothing and says the same.
    let said = reproduce(folder.path());
    for line in said.lines().filter(|line| line.contains(" cells, ")) {
        let counts: Vec<&str> = line
            .split(' ')
            .filter(|w| w.parse::<u32>().is_ok())
            .collect();
        assert_eq!(counts[0], counts[1], "{line}");
    }
    assert_eq!(read("README.md"), index);
}

/// Runs the studies of a described field; whether it worked, and what was said on standard error.
fn own_field(folder: &Path, file: &Path, more: &[&str]) -> (bool, String) {
    let mut reproduce = Command::new(env!("CARGO_BIN_EXE_reproduce"));
    reproduce.arg("--problem").arg(file).args(more);
    reproduce.args(["--commit", "tested", "--out"]);
    reproduce.arg(folder.join("results"));
    let output = reproduce.arg("--cache").arg(folder.join("cache")).output();
    let output = output.unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Disturbances included, which files of episodes would not hold.
#[test]
fn a_described_field_gets_the_studies_that_make_sense_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields");
    let file = examples.join("board-cooling.toml");
    let (worked, said) = own_field(folder, &file, &[]);
    assert!(worked, "{said}");
    let results = folder.join("results");
    let index = std::fs::read_to_string(results.join("README.md")).unwrap();
    for name in ["cardinality", "failure", "noise"] {
        assert!(index.contains(&format!("({name}.md)")), "{index}");
        let read = |end: &str| std::fs::read_to_string(results.join(format!("{name}{end}")));
        check_csv(name, &read(".csv").unwrap());
        assert!(read("-errors.svg").unwrap().contains("</svg>"));
        let page = read(".md").unwrap();
        for part in ["board-cooling", "policy", "proportional", "--problem "] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let (worked, said) = own_field(folder, &file, &["noise"]);
    assert!(worked && said.contains("of them stored"), "{said}");
    assert!(!said.contains(" 0 of them stored"), "{said}");

    let (worked, said) = own_field(folder, &file, &["regret"]);
    assert!(
        !worked && said.contains("cardinality, failure, noise"),
        "{said}"
    );
    // A field without policy and feedback has nothing to compare.
    let text = std::fs::read_to_string(examples.join("published/heat-1d.toml")).unwrap();
    let text = text.split("[feedback]").next().unwrap();
    let bare = folder.join("bare.toml");
    std::fs::write(&bare, text).unwrap();
    let (worked, said) = own_field(folder, &bare, &[]);
    assert!(!worked && said.contains("neither a policy nor"), "{said}");
}

/// Programs that share the cells, all at a time, and one that then has nothing left to compute.
#[test]
fn shards_leave_nothing_but_pages_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields/board-cooling.toml");
    let reproduce = |cache: &str, out: &str, more: &[&str]| {
        let mut reproduce = Command::new(env!("CARGO_BIN_EXE_reproduce"));
        reproduce.arg("--problem").arg(&file).arg("failure");
        reproduce.args(["--commit", "tested"]).args(more);
        for (flag, name) in [("--cache", cache), ("--out", out)] {
            reproduce.arg(flag).arg(folder.join(name));
        }
        reproduce.stdout(Stdio::piped()).stderr(Stdio::piped());
        reproduce
    };
    let shard = |number: usize| reproduce("cache", "pages", &["--shard", &format!("{number}/3")]);
    let shards: Vec<_> = (1..=3)
        .map(|number| shard(number).spawn().unwrap())
        .collect();
    for child in shards {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(!folder.join("pages").exists());
    let told = shard(2).output().unwrap().stdout;
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("all cells are there"), "{told}");
    let merged = reproduce("cache", "pages", &[]).output().unwrap();
    let said = String::from_utf8_lossy(&merged.stderr);
    let counts = said.lines().find(|line| line.contains(" cells, ")).unwrap();
    let counts: Vec<&str> = (counts.split(' '))
        .filter(|word| word.parse::<u32>().is_ok())
        .collect();
    assert_eq!(counts[0], counts[1], "{said}");
    assert!(
        reproduce("another", "alone", &[])
            .status()
            .unwrap()
            .success()
    );
    for name in ["failure.md", "failure.csv"] {
        let [one, three] =
            ["alone", "pages"].map(|out| std::fs::read(folder.join(out).join(name)).unwrap());
        assert!(one == three, "{name} differs");
    }
    let output = reproduce("cache", "pages", &["--shard", "4/3"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("no shard 4 of 3"),
        "{said}"
    );
}
