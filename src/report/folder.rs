//! Where a result is kept: a folder of its own, made before the load starts, so that nothing is measured in vain.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use miette::Diagnostic;
use tempfile::NamedTempFile;
use thiserror::Error;

use super::result::Document;

/// Why a result cannot be kept.
#[derive(Debug, Error, Diagnostic)]
pub enum FolderError {
    /// The folder cannot be made.
    #[error("cannot create the result folder {}", path.display())]
    #[diagnostic(help("choose a parent that you may write to, with `--out DIR`"))]
    Create {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the result cannot be written.
    #[error("cannot write {}", path.display())]
    #[diagnostic(help("is the disk full, or the folder gone or write-protected?"))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of `--json` cannot be written.
    #[error("cannot write the file of `--json`, {}", path.display())]
    #[diagnostic(help("its folder must exist and be writable; `--json -` writes to standard output"))]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The folder of one result: `PARENT/NAME-TIME`.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
}

/// Folders of one name and second that are tried before giving up.
const SAME_SECOND: u32 = 1000;

impl ResultFolder {
    /// Makes the folder, and its parents. `name` may be any text; a folder that exists is never touched.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(parent: &Path, name: &str, started: SystemTime) -> Result<Self, FolderError> {
        let at = Timestamp::try_from(started).unwrap_or(Timestamp::UNIX_EPOCH);
        let stem = format!("{}-{}", file_name(name), at.strftime("%Y%m%dT%H%M%SZ"));
        let failed = |path: &Path, source| FolderError::Create { path: path.to_owned(), source };
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        for attempt in 1..=SAME_SECOND {
            let path = parent.join(if attempt == 1 { stem.clone() } else { format!("{stem}-{attempt}") });
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Err(failed(&parent.join(stem), io::ErrorKind::AlreadyExists.into()))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file of this name lives in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Keeps the scenario as it was resolved (`Plan::resolved`), as `scenario.toml`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_scenario(&self, resolved: &str) -> Result<(), FolderError> {
        let path = self.file("scenario.toml");
        fs::write(&path, resolved).map_err(|source| FolderError::Write { path, source })
    }

    /// Keeps the result as `result.json`, whole or not at all; an earlier one is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_result(&self, document: &Document) -> Result<(), FolderError> {
        let path = self.file("result.json");
        let write = || {
            let mut file = beside(&path)?;
            write_json(document, &mut file)?;
            file.persist(&path).map_err(|error| error.error)
        };
        write().map(drop).map_err(|source| FolderError::Write { path: path.clone(), source })
    }

    /// The names of the files in it that people open, those for people first.
    pub fn files(&self) -> Vec<String> {
        const ORDER: [&str; 4] = ["report.html", "result.json", "timeline.jsonl", "scenario.toml"];
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| (ORDER.iter().position(|n| n == name).unwrap_or(ORDER.len()), name.clone()));
        names
    }
}

/// Where `--json` wants the result. Opened before the load starts.
#[derive(Debug)]
pub enum JsonOutput {
    /// Standard output.
    Stdout,
    /// A file, which is replaced as a whole.
    File {
        /// The file.
        path: PathBuf,
        /// What becomes the file.
        new: NamedTempFile,
    },
    /// Something that is there and no plain file, such as a pipe: written in place.
    Stream {
        /// Its path.
        path: PathBuf,
    },
}

impl JsonOutput {
    /// `-` is standard output, anything else a path.
    ///
    /// # Errors
    /// It cannot be written to.
    pub fn open(place: &str) -> Result<Self, FolderError> {
        if place == "-" {
            return Ok(Self::Stdout);
        }
        let path = behind_links(PathBuf::from(place));
        let failed = |source| FolderError::Json { path: path.clone(), source };
        if place.is_empty() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "a path is missing")));
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => Ok(Self::Stream { path }),
            Ok(found) => {
                // Replacing needs no permission for the file itself, but whoever forbids writing means it.
                if found.permissions().readonly() {
                    return Err(failed(io::ErrorKind::PermissionDenied.into()));
                }
                let new = beside(&path).map_err(failed)?;
                new.as_file().set_permissions(found.permissions()).map_err(failed)?;
                Ok(Self::File { new, path })
            }
            Err(_) => Ok(Self::File { new: beside(&path).map_err(failed)?, path }),
        }
    }

    /// Whether standard output is taken, and the summary has to go elsewhere.
    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes the result there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, document: &Document, stdout: &mut dyn Write) -> Result<(), FolderError> {
        match self {
            Self::Stdout => write_json(document, stdout)
                .and_then(|()| stdout.flush())
                .map_err(|source| FolderError::Json { path: PathBuf::from("-"), source }),
            Self::File { path, mut new } => write_json(document, &mut new)
                .and_then(|()| new.persist(&path).map(drop).map_err(|error| error.error))
                .map_err(|source| FolderError::Json { path, source }),
            Self::Stream { path } => OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|mut stream| write_json(document, &mut stream))
                .map_err(|source| FolderError::Json { path, source }),
        }
    }
}

/// What a link points to, also if there is nothing yet: links stay what they are.
fn behind_links(mut path: PathBuf) -> PathBuf {
    const DEEPEST: usize = 16;
    for _ in 0..DEEPEST {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new(".")).join(target);
    }
    path
}

/// A new file in the same folder, so that it can take the place of `path` in one step.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file is the owner's alone; a result is as readable as any file that the user makes.
    tempfile::Builder::new().prefix(".keyswarm-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

fn write_json(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    out.write_all(&text)
}

/// A scenario's name as a file name that no shell or file system minds.
fn file_name(name: &str) -> String {
    const LONGEST: usize = 80;
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let text: String = name.chars().map(plain).take(LONGEST).collect();
    let text = text.trim_matches(['-', '.']);
    if text.is_empty() { "run".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
