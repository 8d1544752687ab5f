//! Files of a study: Markdown, CSV, pictures, and the index of all.

use crate::Mode;
use crate::findings::Findings;
use crate::provenance::Provenance;
use crate::study::Study;
use artifacts::output::OutputFolder;
use std::path::Path;

/// The folder of results.
pub struct Pages(OutputFolder);

/// How the line of a page begins that the index repeats.
const VERDICT: &str = "Verdict: ";

impl Pages {
    /// In that folder, which nobody else writes to as long as this is held.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self(OutputFolder::claim(folder)?))
    }

    /// Writes all files of a study.
    pub fn write(
        &self,
        study: &dyn Study,
        findings: &Findings,
        provenance: &Provenance,
    ) -> anyhow::Result<()> {
        let name = study.name();
        let mut page = format!("# {}\n\n{VERDICT}{}.\n", study.title(), findings.verdict());
        if provenance.mode == Mode::Quick {
            page += "\nA quick run, with few points and episodes: it shows that the study works, not what is true.\n";
        }
        for paragraph in &findings.about {
            page += &format!("\n{paragraph}\n");
        }
        if !findings.bars.is_empty() {
            page += &format!("\n{}", findings.bars_markdown());
        }
        for table in &findings.tables {
            page += &format!("\n{}", table.markdown());
        }
        for picture in &findings.pictures {
            let file = format!("{name}-{}.svg", picture.name);
            self.0.write(&file, picture.svg.as_bytes())?;
            page += &format!("\n![{}]({file})\n", picture.caption);
        }
        self.remove_other_pictures(name, findings)?;
        page += &format!("\n{}", footer(name, provenance));
        self.0
            .write(&format!("{name}.csv"), csv(findings, provenance).as_bytes())?;
        // Last: a page stands for all that it shows.
        self.0.write(&format!("{name}.md"), page.as_bytes())?;
        Ok(())
    }

    /// Removes pictures that the study no longer has.
    fn remove_other_pictures(&self, study: &str, findings: &Findings) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(self.0.path())? {
            let file = entry?.file_name();
            let Some(file) = file.to_str() else { continue };
            let picture = file
                .strip_prefix(study)
                .and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".svg"));
            if picture.is_some_and(|name| !findings.pictures.iter().any(|p| p.name == name)) {
                self.0.remove(file)?;
            }
        }
        Ok(())
    }

    /// Writes the index of those of these studies whose page is there.
    pub fn write_index(
        &self,
        studies: &[&dyn Study],
        provenance: &Provenance,
    ) -> anyhow::Result<()> {
        let mut text = String::from(
            "# Results\n\nEvery figure here is measured by `cargo xtask reproduce`; no page is written by hand.\n\n\
             | study | | |\n| --- | --- | --- |\n",
        );
        for study in studies {
            let name = study.name();
            let page = std::fs::read_to_string(self.0.path().join(format!("{name}.md")));
            let Ok(page) = page else { continue };
            let verdict = page.lines().find_map(|line| line.strip_prefix(VERDICT));
            text += &format!(
                "| [{name}]({name}.md) | {} | {} |\n",
                study.title(),
                verdict.unwrap_or_default()
            );
        }
        text += &format!("\n{}", footer("", provenance));
        self.0.write("README.md", text.as_bytes())?;
        Ok(())
    }
}

fn footer(study: &str, provenance: &Provenance) -> String {
    let file = provenance.file.as_ref();
    let file = file.map_or(String::new(), |file| format!("--problem {file} "));
    let command = format!(
        "`cargo xtask reproduce --{} {file}{study}",
        provenance.mode.name()
    );
    let mut text = format!("---\n\n{}`\n\n", command.trim_end());
    for line in provenance.lines() {
        text += &format!("- {line}\n");
    }
    text
}

fn csv(findings: &Findings, provenance: &Provenance) -> String {
    let mut text = String::new();
    for line in provenance.lines() {
        text += &format!("# {line}\n");
    }
    for row in &findings.csv {
        let quoted = row.iter().map(|cell| match cell.contains([',', '"']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        });
        text += &quoted.collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}
