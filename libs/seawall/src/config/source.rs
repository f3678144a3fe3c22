//! Files and texts, read into trees.

use std::fs;
use std::path::{Path, PathBuf};

use super::layer::Report;
use super::tree::{Node, TEXT_MAX, find_duplicates};
use super::value::Wrong;
use super::{Place, json, properties, toml, yaml};

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
    /// JSON as in RFC 8259.
    Json,
    /// Java's properties: `key=value` in lines, with the keys of a section joined by dots.
    Properties,
}

impl Format {
    /// The format that the name of a file says.
    #[must_use]
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Format::Yaml),
            "toml" => Some(Format::Toml),
            "json" => Some(Format::Json),
            "properties" => Some(Format::Properties),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    File(PathBuf),
    Text { name: String, text: String, format: Format },
}

impl Source {
    /// The documents of a file: one, or several that are separated by `---`. Nothing, if it can't be read.
    pub(super) fn read(self, order: usize, own_file: bool, report: &mut Report) -> Option<Vec<Node>> {
        // Each document of a file has a number of its own.
        let order = u32::try_from(order).unwrap_or(u32::MAX).saturating_mul(yaml::DOCUMENTS_MAX);
        match self {
            Source::File(path) => {
                let file = Place::whole(&path.display().to_string(), order);
                let (text, format) = read_file(&file, &path, report)?;
                read_text(&file, &text, format, own_file, report)
            }
            Source::Text { name, text, format } => {
                read_text(&Place::whole(&name, order), &text, format, own_file, report)
            }
        }
    }
}

fn read_file(file: &Place, path: &Path, report: &mut Report) -> Option<(String, Format)> {
    let Some(format) = Format::of(path) else {
        let wrong = Wrong::new(
            "its name does not say how it is written",
            "call it `.yaml`, `.toml`, `.json` or `.properties`",
        );
        report.wrong(file, "", wrong);
        return None;
    };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.wrong(
                file,
                "",
                Wrong::new(format!("can't be read: {error}"), "check its name and its rights"),
            );
            return None;
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => Some((text, format)),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            let wrong = Wrong::new(format!("line {line} is not UTF-8"), "save the file as UTF-8");
            report.wrong(file, "", wrong);
            None
        }
    }
}

/// Reads a text. In an application's own file, what only concerns others may be written as they like it.
pub(super) fn read_text(
    file: &Place,
    text: &str,
    format: Format,
    own_file: bool,
    report: &mut Report,
) -> Option<Vec<Node>> {
    if text.len() > TEXT_MAX {
        let reason = format!("it has more than {TEXT_MAX} bytes");
        report.wrong(file, "", Wrong::new(reason, "a configuration is smaller than that"));
        return None;
    }
    let text = text.trim_start_matches('\u{feff}');
    let documents = match format {
        Format::Yaml => yaml::read(file, text, own_file).map_err(|problem| vec![problem]),
        Format::Toml => toml::read(file, text).map(|tree| vec![tree]),
        Format::Json => json::read(file, text).map(|tree| vec![tree]).map_err(|problem| vec![problem]),
        Format::Properties => properties::read(file, text),
    };
    match documents {
        Ok(documents) => {
            for tree in &documents {
                find_duplicates(tree, "", &mut report.problems);
            }
            Some(documents)
        }
        Err(problems) => {
            report.problems.extend(problems);
            None
        }
    }
}
