//! Where the program of a server is found, and why a server could not be started.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// A server could not be started or controlled.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// The program is not installed.
    Missing {
        /// The name of the program.
        program: String,
        /// The Debian package that has it.
        package: String,
    },
    /// The operating system refused a process, a file or a port.
    Io(io::Error),
    /// The server or one of its tools failed.
    Failed {
        /// What was asked of the server.
        action: String,
        /// What the server or the tool printed.
        output: String,
    },
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Missing { program, package } => write!(
                f,
                "the program `{program}` is not installed: run `cargo xtask test`, or install it (Debian and Ubuntu: `apt-get install {package}`)"
            ),
            ServerError::Io(_) => write!(f, "the operating system refused to run a server"),
            ServerError::Failed { action, output } => write!(f, "{action} failed: {output}"),
        }
    }
}

impl Error for ServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ServerError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        ServerError::Io(error)
    }
}

/// Finds a program on the path, then in the folders where Debian keeps servers that are not on it.
pub fn find_program(program: &str, package: &str) -> Result<PathBuf, ServerError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders: Vec<PathBuf> = versions_of(Path::new("/usr/lib/postgresql"));
    folders.extend(env::split_paths(&path).chain(system));
    let found = folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| ServerError::Missing { program: program.to_owned(), package: package.to_owned() })
}

/// The `bin` folders of all versions that are installed below a folder, the newest first.
fn versions_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// Finds a loopback port that nobody listens on.
pub fn free_port() -> Result<u16, ServerError> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The server that all tests of a process share.
#[expect(clippy::panic, reason = "a test without its server fails with the reason")]
pub(super) fn started<S>(start: fn() -> Result<S, ServerError>) -> S {
    start().unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_the_package_that_has_it() {
        let error = find_program("no-such-server", "no-such-package").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`no-such-server`") && text.contains("apt-get install no-such-package"),
            "{text}"
        );
    }
}
