//! Where in a file something stands.

use std::fmt;
use std::sync::Arc;

/// Where a setting or a mistake stands: a file with line and column, or a variable of the environment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Reports follow the order in which files were given, whatever they are called.
    order: u32,
    line: u32,
    column: u32,
    file: Arc<str>,
}

impl Place {
    /// A file as a whole.
    #[cfg(feature = "config")]
    pub(super) fn whole(file: &str, order: u32) -> Self {
        Place { order, line: 0, column: 0, file: file.into() }
    }

    /// A point in the same file; both numbers count from 1.
    #[cfg(feature = "config")]
    pub(super) fn at(&self, line: usize, column: usize) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place { line: number(line), column: number(column), ..self.clone() }
    }

    /// The same file, in the document of this number: a later one lies over an earlier one, as a later file does.
    #[cfg(feature = "config")]
    pub(super) fn in_document(&self, number: u32) -> Self {
        Place { order: self.order.saturating_add(number), ..self.clone() }
    }

    /// Whether both are in the same file, and in the same document of it.
    #[cfg(feature = "config")]
    pub(super) fn is_beside(&self, other: &Place) -> bool {
        (self.order, &self.file) == (other.order, &other.file)
    }

    /// The file, as it was named, or the variable.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1. `None` where the whole file is meant, and for a variable.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        (self.line > 0).then_some(self.line)
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        (self.line > 0).then_some(self.column)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 { write!(f, ":{}:{}", self.line, self.column) } else { Ok(()) }
    }
}
